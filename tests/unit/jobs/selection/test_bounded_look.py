"""A query or file over few records is a small job, and nothing about it is guessed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.preview import preview
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.words.errors import QueryRefused, Transient
from handlers.jobs.words.job import Job, Lane, Traversal
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.upload import Format, UploadForm
from handlers.testing.record_query import MemoryRecordQuery
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, now, prices, run_next

if TYPE_CHECKING:
    from handlers.jobs.selection.request import Accepted
    from handlers.jobs.words.filters import Filter
    from handlers.jobs.words.ports import Matches, World

MOST = 5
LIMITS = Limits(small_max_items=MOST)
JSONL = UploadForm(format=Format.JSONL)
PRICED = {"all": [{"field": "price", "op": "eq", "value": 10}]}
ADD = {"operation": "adjust_number", "params": {"field": "price", "add": 1}, "subject": "s"}


def wanted(world: World, **body: Any) -> Accepted:
    return accept(parse(json.dumps({**ADD, **body})), world.operations, max_ids=1000)


def made(world: World, **body: Any) -> Job:
    outcome = submit(world, TENANT, wanted(world, **body))
    assert isinstance(outcome, Created)
    return outcome.job


def upload(world: MemoryWorld, content: bytes, form: UploadForm = JSONL) -> str:
    offer = offer_upload(world, TENANT, form)
    world.uploads.send(offer.address, content)
    return offer.upload_id


def jsonl(ids: Iterable[str]) -> bytes:
    return "".join(json.dumps(id_) + "\n" for id_ in ids).encode()


@dataclass
class Watched(MemoryRecordQuery):
    """A source that counts its calls, and fails or takes its time when told to."""

    world: MemoryWorld
    look_at: int | None = None
    fails: Exception | None = None
    takes_ms: int = 0
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.world.store, look_at=self.look_at)

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        self.asked.append(limit)
        self.world.runtime.sleep(self.takes_ms)
        if self.fails is not None:
            raise self.fails
        return super().page(tenant, filter_, cursor, limit)


# --- queries ----------------------------------------------------------------------------------


MARK = {"operation": "set_fields", "params": {"fields": {"seen": True}}}
"""Writes no field that the query selects by, so that a live walk is allowed."""


@pytest.mark.parametrize("count", [0, 1, MOST - 1, MOST])
@pytest.mark.parametrize("asked", ["auto", "live", "snapshot"])
def test_a_query_over_few_records_is_a_small_job(count: int, asked: str) -> None:
    world = memory_world(limits=LIMITS)
    ids = fill(world, count)
    job = made(world, **MARK, query=PRICED, traversal=asked)
    assert (job.lane, job.ids, job.total) == (Lane.SMALL, tuple(ids), count)
    assert job.traversal is Traversal.SNAPSHOT
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.state, ended.succeeded, ended.position) == (State.SUCCEEDED, count, count)
    assert all(each.fields["seen"] for each in world.records.read(TENANT, ids).values())


def test_one_record_more_is_a_bulk_job() -> None:
    world = memory_world(limits=LIMITS)
    fill(world, MOST + 1)
    job = made(world, query=PRICED)
    assert (job.lane, job.ids, job.total) == (Lane.BULK, None, None)


@pytest.mark.parametrize(("look_at", "lane"), [(2, Lane.SMALL), (1, Lane.BULK)])
def test_a_look_has_three_calls(look_at: int, lane: Lane) -> None:
    """Of a source that gives up after some records, however few match."""
    world = memory_world(limits=LIMITS)
    fill(world, 4)
    source = Watched(world, look_at=look_at)
    assert made(replace(world, query=source), query=PRICED).lane is lane
    assert len(source.asked) == (2 if lane is Lane.SMALL else 3)
    assert source.asked[0] == MOST + 1


def test_a_slow_look_makes_no_further_call() -> None:
    world = memory_world(limits=LIMITS)
    fill(world, 4)
    source = Watched(world, look_at=2, takes_ms=LIMITS.look_ms)
    assert made(replace(world, query=source), query=PRICED).lane is Lane.BULK
    assert len(source.asked) == 1


@pytest.mark.parametrize("error", [Transient("down"), QueryRefused("no such field")])
def test_a_source_that_fails_makes_a_bulk_job_as_without_a_look(error: Exception) -> None:
    world = memory_world(limits=LIMITS)
    fill(world, 1)
    source = Watched(world, fails=error)
    assert made(replace(world, query=source), query=PRICED).lane is Lane.BULK
    assert len(source.asked) == 1


def test_a_deployment_can_do_without() -> None:
    world = memory_world(limits=LIMITS.model_copy(update={"look_calls": 0}))
    fill(world, 1)
    source = Watched(world)
    job = made(replace(world, query=source), query=PRICED)
    assert (job.lane, source.asked) == (Lane.BULK, [])
    assert made(world, upload_id=upload(world, jsonl(["r0000"])), subject="t").lane is Lane.BULK


def test_a_record_that_stopped_matching_is_skipped_as_in_any_walk() -> None:
    world = memory_world(limits=LIMITS)
    ids = fill(world, 3)
    job = made(world, query=PRICED)
    world.records.load(TENANT, {ids[1]: {"price": 99, "version": 2}})
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.succeeded, ended.skipped) == (2, 1)
    assert prices(world, ids) == {11, 99}


def test_ids_without_room_in_the_job_are_stored() -> None:
    world = memory_world(limits=Limits(small_max_items=200))
    ids = [f"{n:0250}" for n in range(150)]
    world.records.load(TENANT, {id_: {"price": 10, "version": 1} for id_ in ids})
    job = made(world, query=PRICED)
    assert (job.lane, job.ids, job.total) == (Lane.SMALL, None, 150)
    run_next(world, Lane.SMALL)
    assert now(world, job).succeeded == 150
    assert not world.payloads.names()


def test_a_small_query_that_failed_can_be_retried() -> None:
    world = memory_world(limits=Limits(small_max_items=MOST, chunk_size=1))
    fill(world, 3)
    job = made(world, query=PRICED, params={"field": "none", "add": 1}, tolerated_failure_percent=0)
    run_next(world, Lane.SMALL)
    assert (now(world, job).state, now(world, job).position) == (State.FAILED, 1)
    assert isinstance(control.retry(world, TENANT, job.id), Job)


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, MOST - 1, MOST])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_over_few_records_is_a_small_job(count: int, *, packed: bool) -> None:
    """Blank lines and repeats are no records."""
    world = memory_world(limits=LIMITS)
    ids = fill(world, count)
    content = b"\n\n" + jsonl([*ids, *ids]) + b"\n"
    form = JSONL.model_copy(update={"gzip": packed})
    job = made(world, upload_id=upload(world, gzip.compress(content) if packed else content, form))
    assert (job.lane, job.ids, job.total, job.duplicates) == (Lane.SMALL, tuple(ids), count, count)
    run_next(world, Lane.SMALL)
    assert now(world, job).succeeded == count
    assert prices(world, ids) == {11}


def test_one_id_more_in_a_file_is_a_bulk_job() -> None:
    world = memory_world(limits=LIMITS)
    ids = fill(world, MOST + 1)
    job = made(world, upload_id=upload(world, jsonl(ids)))
    assert (job.lane, job.ids, job.total) == (Lane.BULK, None, None)


@pytest.mark.parametrize(
    "content",
    [
        jsonl(["a"]) + b"\n" * 200,  # too long as it is stored
        b"[1]\n",  # not a record's id: the worker says so, with the line
        b"",
    ],
)
def test_what_the_look_cannot_tell_is_left_to_the_worker(content: bytes) -> None:
    world = memory_world(limits=LIMITS.model_copy(update={"look_bytes": 100}))
    if not content:
        content = b"\n" * 150
    assert made(world, upload_id=upload(world, content)).lane is Lane.BULK


def test_a_file_that_is_long_once_it_is_unpacked_is_left_to_the_worker() -> None:
    world = memory_world(limits=LIMITS)
    packed = gzip.compress(jsonl(["a"]) + b"\n" * LIMITS.look_bytes)
    assert len(packed) < LIMITS.look_bytes
    form = JSONL.model_copy(update={"gzip": True})
    assert made(world, upload_id=upload(world, packed, form)).lane is Lane.BULK


# --- previews ---------------------------------------------------------------------------------


def test_a_preview_says_what_the_job_would_be() -> None:
    world = memory_world(limits=LIMITS)
    ids = fill(world, 3)
    looked = preview(world, TENANT, wanted(world, query=PRICED))
    assert (looked.lane, looked.count, looked.exact) == (Lane.SMALL, 3, True)
    assert list(looked.sample) == ids
    assert looked.traversal is Traversal.SNAPSHOT
    file = preview(world, TENANT, wanted(world, upload_id=upload(world, jsonl([*ids, ids[0]]))))
    assert (file.lane, file.count, file.duplicates) == (Lane.SMALL, 3, 1)
