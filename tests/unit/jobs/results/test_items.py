"""The results of a job, record by record and page by page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.results.items import (
    ItemOutcome,
    Mark,
    Unfinished,
    is_row,
    item_page,
    item_results,
)
from handlers.jobs.storage import control_table
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.writes import Put
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, fill, new_job, now, run_next
from tests.support.results import a_job

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Store
    from handlers.jobs.words.writes import Item, Page, Value, Write

FAILED = ItemOutcome.FAILED


def test_each_result_is_listed_once_in_the_order_it_was_settled() -> None:
    world, job = a_job(failing=7, chunk=3)
    found = list(item_results(world, job, FAILED, lambda: False))
    assert [result.id for result in found] == [f"r{n:04}" for n in range(7)]
    assert {result.outcome for result in found} == {FAILED}
    assert not list(item_results(world, job, ItemOutcome.SKIPPED, lambda: False))


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_hold_each_result_once_whatever_their_length(limit: int) -> None:
    world, job = a_job(failing=7, chunk=3)
    ids: list[str] = []
    mark: Mark | None = Mark()
    while mark is not None:
        page = item_page(world, job, FAILED, mark, limit=limit, max_bytes=10_000)
        assert len(page.found) <= limit
        ids += [result.id for result in page.found]
        mark = page.next
    assert ids == [f"r{n:04}" for n in range(7)]


def test_a_page_is_bounded_in_bytes_and_never_empty_while_there_is_one() -> None:
    world, job = a_job(failing=3, chunk=3)
    page = item_page(world, job, FAILED, Mark(), limit=100, max_bytes=1)
    assert len(page.found) == 1
    assert page.next is not None


def test_rows_of_chunks_after_the_job_was_read_are_not_listed() -> None:
    world, job = a_job(failing=2, chunk=3)
    later = control_table.outcome_key(job.id, "failed", job.position)
    world.store.transact("later", [Put(later, {"failed": [{"id": "x", "reason": "new"}]})])
    assert len(list(item_results(world, job, FAILED, lambda: False))) == 2


class Reads:
    """A store that counts the reads of a partition and the rows that they return."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def query_partition(self, *args: Any, **options: Any) -> Page:
        page = self._store.query_partition(*args, **options)
        self.calls += 1
        self.rows += len(page.found)
        return page


@pytest.mark.parametrize("absent", [10, 1000])
def test_c115_one_outcome_is_read_without_the_others(absent: int) -> None:
    """Two failed records, however many others are skipped, cost a look for rows of version 0.1.0
    and their own rows."""
    world = memory_world(limits=Limits(chunk_size=5))
    ids = fill(world, 2)
    world.records.load(TENANT, {id_: {"price": "none", "version": 1} for id_ in ids})
    job = new_job(world, [ids[0], *(f"absent{n}" for n in range(absent)), ids[1]])
    run_next(world, job.lane)
    job = now(world, job)
    assert (job.failed, job.skipped) == (2, absent)
    store = Reads(world.store)
    seen = replace(world, store=store)  # type: ignore[arg-type]  # it passes everything on
    assert [r.id for r in item_results(seen, job, FAILED, lambda: False)] == ids
    assert (store.calls, store.rows) == (2, 2)
    page = item_page(seen, job, FAILED, Mark(), limit=100, max_bytes=10_000)
    assert ([r.id for r in page.found], page.next) == (ids, None)
    assert (store.calls, store.rows) == (4, 4)


def test_c115_an_outcome_that_no_record_has_is_not_looked_for() -> None:
    world, job = a_job(failing=7, chunk=1)
    store = Reads(world.store)
    seen = replace(world, store=store)  # type: ignore[arg-type]  # it passes everything on
    page = item_page(seen, job, ItemOutcome.SKIPPED, Mark(), limit=100, max_bytes=10_000)
    assert (list(page.found), page.next, store.calls) == ([], None, 0)


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("outcome", [FAILED, ItemOutcome.SKIPPED])
def test_c115_rows_of_the_version_before_are_listed_with_the_new_ones(
    outcome: ItemOutcome, limit: int
) -> None:
    """A worker of each version did a part of the job, also chunks that were done in turns."""
    world, job = a_job(failing=0, chunk=3)

    def entries(kind: str, position: int) -> list[Value]:
        return [{"id": f"{kind}{position}{n}", "reason": "no"} for n in range(2)]

    writes: list[Write] = []
    for position in (0, 6):
        both: Item = {kind: entries(kind, position) for kind in ("failed", "skipped")}
        writes.append(Put(control_table.mixed_key(job.id, position), both))
    for position in (3, 9):
        for kind in ("failed", "skipped"):
            key = control_table.outcome_key(job.id, kind, position)
            writes.append(Put(key, {kind: entries(kind, position)}))
    world.store.transact("rows", writes)
    job = job.model_copy(update={"position": 10, "failed": 8, "skipped": 8})
    found: list[str] = []
    mark: Mark | None = Mark()
    while mark is not None:
        assert mark.row is None or is_row(outcome, mark.row)
        page = item_page(world, job, outcome, mark, limit=limit, max_bytes=10_000)
        found += [result.id for result in page.found]
        mark = page.next
    assert found == [f"{outcome}{position}{n}" for position in (0, 6, 3, 9) for n in range(2)]
    assert found == [r.id for r in item_results(world, job, outcome, lambda: False)]


def test_a_listing_that_is_out_of_time_says_so() -> None:
    world, job = a_job(failing=7, chunk=3)
    with pytest.raises(Unfinished):
        list(item_results(world, job, FAILED, lambda: True))


def test_a_refused_record_says_which_sink_refused_it() -> None:
    world, job = a_job(failing=1, chunk=3)
    entry = {"sink": "index", "id": "a", "reason": "too large"}
    key = control_table.refused_key(job.id, 0, 1)
    world.store.transact("refused", [Put(key, {"refused": [entry]})])
    [result] = item_results(world, job, ItemOutcome.REFUSED, lambda: False)
    assert (result.id, result.reason, result.sink) == ("a", "too large", "index")


def test_a_job_without_results_has_an_empty_page() -> None:
    world, job = a_job(failing=0, chunk=3)
    page = item_page(world, job, FAILED, Mark(), limit=1, max_bytes=1)
    assert (list(page.found), page.next) == ([], None)
