"""Guards around what only some seeds have, each taken out at a time: files, queries, items that
cannot be decoded, removed records outside, dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from handlers.jobs.effects.run import _unchanged
from handlers.jobs.execution.planning import plan_one
from handlers.jobs.lifecycle.dead_letters import Fate, Redriven, _resend
from handlers.jobs.lifecycle.undecodable import _counts, _HeldLease, _UndecodableJob
from handlers.jobs.selection.bounded_look import Few, few_by_query
from handlers.jobs.selection.id_sources import Part, QueriedIds
from handlers.jobs.selection.upload_parser import BadUpload, parse_ids
from handlers.jobs.words.limits import QUERY_PAGE
from handlers.jobs.words.writes import Present

from .mutating import everywhere, registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from handlers.jobs.words.filters import Filter
    from handlers.jobs.words.job import IdCursor, Job
    from handlers.jobs.words.ports import World

MUTATIONS, mutation = registry()


# --- queries and files ------------------------------------------------------------------------


@mutation
def a_record_that_no_longer_matches_is_changed() -> AbstractContextManager[object]:
    def unfiltered(world: World, job: Job, work: Any, id_: str, record: Any) -> Any:
        return plan_one(world, job, replace(work, filter=None), id_, record)

    return everywhere(plan_one, unfiltered)


@mutation
def a_walk_ends_at_a_page_that_finds_nothing() -> AbstractContextManager[object]:
    original = QueriedIds.after

    def after(self: QueriedIds, cursor: IdCursor, limit: int) -> Part:
        part = original(self, cursor, limit)
        return part if part.entries else Part((), None)

    return patch.object(QueriedIds, "after", after)


@mutation
def a_look_takes_one_page_for_all() -> AbstractContextManager[object]:
    def first_page(world: World, tenant: str, query: Filter) -> Few | None:
        assert world.query is not None
        found = world.query.page(tenant, query, None, QUERY_PAGE).found
        few = len(found) <= world.limits.small_max_items
        return Few(tuple(match.id for match in found)) if few else None

    return everywhere(few_by_query, first_page)


@mutation
def a_file_is_read_up_to_a_bad_line() -> AbstractContextManager[object]:
    def parse(*args: Any, **named: Any) -> Iterator[str]:
        try:
            yield from parse_ids(*args, **named)
        except BadUpload:
            return

    return everywhere(parse_ids, parse)


# --- items that cannot be decoded -------------------------------------------------------------


@mutation
def a_job_that_a_worker_may_run_is_ended_as_undecodable() -> AbstractContextManager[object]:
    return patch.object(_HeldLease, "lasts", lambda *_: False)


@mutation
def an_undecodable_job_keeps_its_slot() -> AbstractContextManager[object]:
    return everywhere(_counts, lambda *_: {})


@mutation
def an_undecodable_job_keeps_its_subject() -> AbstractContextManager[object]:
    return patch.object(_UndecodableJob, "_release", lambda _: True)


@mutation
def an_undecodable_job_is_ended_whatever_became_of_it() -> AbstractContextManager[object]:
    there = property(lambda _: (Present("state"),))
    return patch.object(_UndecodableJob, "_as_read", there)


# --- outside ----------------------------------------------------------------------------------


@mutation
def a_removed_record_wins_over_one_made_again() -> AbstractContextManager[object]:
    return everywhere(_unchanged, lambda *_: ())


@mutation
def a_document_is_replaced_though_its_record_has_changed() -> AbstractContextManager[object]:
    def all_sent(_world: World, batch: Any, ids: Any) -> Any:
        return [sent for sent in batch.records if sent.id in set(ids)]

    return everywhere(_unchanged, all_sent)


# --- dead letters -----------------------------------------------------------------------------


@mutation
def a_dead_letter_is_dropped_without_a_fresh_message() -> AbstractContextManager[object]:
    return everywhere(_resend, lambda *_: Redriven(Fate.RESENT, "it was not"))
