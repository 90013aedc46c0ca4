"""Jobs over files and queries, from the request to the last record, on the in-memory world."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.selection.preview import Preview, preview
from handlers.jobs.selection.request import BadRequest, Unprocessable, accept, parse
from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import EndReason, Job, Lane, Traversal
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import Match, Matches
from handlers.jobs.words.states import State
from handlers.jobs.words.upload import Format, UploadForm
from handlers.testing.record_query import MemoryRecordQuery
from tests.support.jobs import TENANT, fill, now, prices, run_next
from tests.support.process import process
from tests.support.results import stored_results
from tests.support.selections import (
    ADD,
    GROUP,
    JSONL,
    ask,
    grouped,
    jsonl,
    made,
    nothing_left,
    upload,
)
from tests.support.walks import walking_world

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handlers.jobs.words.filters import Filter
    from handlers.testing.world import MemoryWorld

PRICED = {"all": [{"field": "price", "op": "eq", "value": 10}]}


# --- uploads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 95, 96, 97, 1000])
def test_an_uploaded_file_is_worked_through_once(count: int) -> None:
    world = walking_world()
    ids = fill(world, count)
    job = made(world, upload_id=upload(world, b"\n" + jsonl([*ids, *ids[: count // 2]])))
    assert (job.lane, job.total, job.payload) == (Lane.BULK, None, None)
    assert isinstance(run_next(world, Lane.BULK), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.total, ended.succeeded, ended.position, ended.duplicates) == (
        State.SUCCEEDED,
        count,
        count,
        count,
        count // 2,
    )
    assert prices(world, ids) <= {11}
    assert nothing_left(world)


def test_c57_a_repeat_far_away_in_the_file_is_one_record_also_across_a_resume() -> None:
    world = walking_world(limits=Limits(chunk_size=10))
    ids = fill(world, 45)
    job = made(world, upload_id=upload(world, jsonl([*ids, ids[0], *ids[40:], ids[3]])))
    looks = iter([False] * 3 + [True] * 9)
    stop: Callable[[], bool] = lambda: next(looks)  # noqa: E731  the shape the worker takes
    assert isinstance(run_next(world, Lane.BULK, stopping=stop), KeepMessage)
    stopped = now(world, job)
    assert 0 < stopped.position < 45
    run_next(world, Lane.BULK)
    ended = now(world, job)
    assert (ended.total, ended.duplicates, ended.succeeded, ended.skipped) == (45, 7, 45, 0)
    assert prices(world, ids) == {11}


def test_c55_ids_that_look_like_numbers_stay_apart() -> None:
    world = walking_world()
    ids = ["007", "07", "7", "1e5", " 7 ", "00123", "123"]
    world.records.load(TENANT, {id_: {"price": 10, "version": 1} for id_ in ids})
    table = "name,sku\r\n" + "".join(f'"x, y",{id_}\r\n' for id_ in ids)
    form = UploadForm(format=Format.CSV, column="sku", gzip=True)
    job = made(world, upload_id=upload(world, gzip.compress(table.encode()), form))
    run_next(world, Lane.BULK)
    assert now(world, job).succeeded == len(ids)
    assert prices(world, ids) == {11}


def test_a_bad_line_fails_the_job_before_any_record_is_changed() -> None:
    world = walking_world()
    ids = fill(world, 30_000)
    lines = jsonl(ids).splitlines(keepends=True)
    lines[27_776] = b"7\n"
    job = made(world, upload_id=upload(world, b"".join(lines)))
    assert isinstance(run_next(world, Lane.BULK), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.BAD_UPLOAD)
    assert ended.message.startswith("line 27777: the id is the number 7")
    assert (ended.position, ended.payload, ended.total) == (0, None, None)
    assert prices(world, ids) == {10}
    assert nothing_left(world)
    assert isinstance(ask(world, ids=ids[:1]), Created)


@pytest.mark.parametrize("change", ["dropped", "replaced"])
def test_a_file_that_is_gone_or_another_one_fails_the_job(change: str) -> None:
    world = walking_world()
    ids = fill(world, 3)
    offer = offer_upload(world, TENANT, JSONL)
    world.uploads.send(offer.address, jsonl(ids))
    job = made(world, upload_id=offer.upload_id)
    if change == "dropped":
        [name] = world.uploads.names()
        world.uploads.drop(name)
    else:
        world.uploads.send(offer.address, jsonl(["others"]))
    run_next(world, Lane.BULK)
    assert (now(world, job).state, now(world, job).end_reason) == (
        State.FAILED,
        EndReason.UPLOAD_GONE,
    )
    assert prices(world, ids) == {10}
    assert nothing_left(world)


def test_another_tenants_file_does_not_exist() -> None:
    world = walking_world()
    theirs = upload(world, b'"a"\n', tenant="other")
    before = world.store.snapshot()
    for upload_id in (theirs, "0" * 32):
        with pytest.raises(Unprocessable, match="no such upload") as caught:
            ask(world, upload_id=upload_id)
        assert caught.value.field == "upload_id"
    assert world.store.snapshot() == before
    assert isinstance(ask(world, "other", upload_id=theirs), Created)


def test_a_file_over_the_limit_is_refused() -> None:
    world = walking_world(limits=Limits(max_upload_bytes=10))
    fits = upload(world, b'"abcdef"\n\n')
    too_large = upload(world, b'"abcdef"\n\n\n')
    with pytest.raises(Unprocessable, match="11 bytes"):
        ask(world, upload_id=too_large)
    assert isinstance(ask(world, upload_id=fits), Created)


@pytest.mark.parametrize("upload_id", ["", "x", "A" * 32, "0" * 31, "0" * 33, "../" + "0" * 29, 7])
def test_what_is_no_upload_id(upload_id: object) -> None:
    with pytest.raises(BadRequest) as caught:
        ask(walking_world(), upload_id=upload_id)
    assert caught.value.field == "upload_id"


# --- exactly one selection, and never an empty one --------------------------------------------

EMPTY: list[tuple[dict[str, object], str]] = [
    ({}, "ids"),
    ({"ids": []}, "ids"),
    ({"ids": None}, "ids"),
    ({"ids": [""]}, "ids[0]"),
    ({"query": {}}, "query.all"),
    ({"query": None}, "query"),
    ({"query": {"all": []}}, "query"),
    ({"query": {"all": [{}]}}, "query.all[0]"),
    ({"query": {"all": [{"field": "", "op": "eq", "value": 1}]}}, "query.all[0].field"),
    ({"query": {"all": [{"field": "a", "op": "in", "value": []}]}}, "query.all[0].value"),
    ({"query": {"all": [{"field": "a", "op": "prefix", "value": ""}]}}, "query.all[0].value"),
    ({"upload_id": None}, "upload_id"),
    ({"ids": ["a"], "query": PRICED}, "query"),
    ({"ids": ["a"], "upload_id": "0" * 32}, "upload_id"),
    ({"ids": ["a"], "traversal": "live"}, "traversal"),
    ({"query": PRICED, "traversal": None}, "traversal"),
    ({"query": PRICED, "traversal": "offset"}, "traversal"),
]


@pytest.mark.parametrize(("body", "field"), EMPTY, ids=[str(n) for n in range(len(EMPTY))])
def test_c59_an_empty_condition_selects_nothing(body: dict[str, Any], field: str) -> None:
    world = walking_world()
    ids = fill(world, 3)
    before = world.store.snapshot()
    with pytest.raises(BadRequest) as caught:
        ask(world, **body)
    assert caught.value.field == field
    assert world.store.snapshot() == before
    assert prices(world, ids) == {10}
    assert isinstance(ask(world, ids=ids), Created)


# --- queries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 300, 1200])
@pytest.mark.parametrize("query", [PRICED, GROUP], ids=["shrinks", "stays"])
def test_c39_a_set_that_the_job_shrinks_is_worked_through(
    count: int, query: dict[str, Any]
) -> None:
    """The first query's records stop matching as they are changed, the second's do not."""
    world = walking_world()
    ids = grouped(world, count)
    world.records.load(TENANT, {"z-other": {"price": 99, "group": "h", "version": 1}})
    job = made(world, query=query)
    expected = Traversal.SNAPSHOT if query is PRICED else Traversal.LIVE
    assert (job.traversal, job.lane, job.total) == (expected, Lane.BULK, None)
    assert isinstance(run_next(world, Lane.BULK), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.total, ended.succeeded, ended.skipped) == (
        State.SUCCEEDED,
        count,
        count,
        0,
    )
    assert prices(world, ids) <= {11}
    assert prices(world, ["z-other"]) == {99}
    assert nothing_left(world)


@pytest.mark.parametrize("asked", ["live", "snapshot", "auto"])
def test_c39_records_that_come_meanwhile_are_in_or_out_as_documented(asked: str) -> None:
    """Live: in when behind the cursor, that is with a greater id. Snapshot: out."""
    world = walking_world(limits=Limits(chunk_size=10))
    grouped(world, 30)
    job = made(world, query=GROUP, traversal=asked)
    looks = iter([False] * 2 + [True] * 9)
    run_next(world, Lane.BULK, stopping=lambda: next(looks))
    position = now(world, job).position
    assert 0 < position < 30
    late = {"a-late": False, "z-late": asked != "snapshot"}
    world.records.load(TENANT, {id_: {"price": 10, "group": "g", "version": 1} for id_ in late})
    run_next(world, Lane.BULK)
    ended = now(world, job)
    for id_, is_in in late.items():
        assert prices(world, [id_]) == ({11} if is_in else {10})
    assert ended.total == ended.succeeded == 30 + sum(late.values())


def test_c61_no_match_is_done_at_once() -> None:
    for query in (PRICED, GROUP):
        world = walking_world()
        job = made(world, query=query)
        assert isinstance(run_next(world, Lane.BULK), DeleteMessage)
        ended = now(world, job)
        assert (ended.state, ended.total, ended.position) == (State.SUCCEEDED, 0, 0)
        assert nothing_left(world)


def test_c61_records_that_vanish_after_the_snapshot_are_skipped() -> None:
    world = walking_world(limits=Limits(chunk_size=10))
    ids = grouped(world, 30)
    job = made(world, query=GROUP, traversal="snapshot")
    # Stops after the list was written, before the first chunk.
    looks = iter([False] + [True] * 9)
    run_next(world, Lane.BULK, stopping=lambda: next(looks))
    listed = now(world, job)
    assert (listed.total, listed.position) == (30, 0)
    removed = world.records.read(TENANT, ids)
    for record in removed.values():
        world.store.transact("vanish", [world.records.remove(record, "somebody")])
    run_next(world, Lane.BULK)
    ended = now(world, job)
    assert (ended.state, ended.total, ended.skipped) == (State.SUCCEEDED, 30, 30)
    assert nothing_left(world)


def test_a_record_that_no_longer_matches_when_it_is_read_is_skipped_with_the_reason() -> None:
    world = walking_world()
    stale = _Stale(world.query, ["r0000", "gone", "r0001"])
    grouped(world, 2)
    world.records.load(TENANT, {"r0001": {"price": 10, "group": "other", "version": 2}})
    world = replace(world, query=stale)  # type: ignore[arg-type]  # it finds what no longer is
    job = made(world, query=GROUP)
    run_next(world, Lane.BULK)
    ended = now(world, job)
    assert (ended.total, ended.succeeded, ended.skipped) == (3, 1, 2)
    assert prices(world, ["r0000"]) == {11}
    assert prices(world, ["r0001"]) == {10}
    assert stored_results(world, job.id, "skipped") == [
        {"id": "gone", "reason": "no such record"},
        {"id": "r0001", "reason": "no longer matches the query"},
    ]


class _Stale:
    """An index that is behind: it finds the same ids whatever the records say."""

    def __init__(self, inner: MemoryRecordQuery, ids: Sequence[str]) -> None:
        self._inner = inner
        self._ids = ids
        self.sorts, self.searchable = inner.sorts, inner.searchable

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        return Matches([Match(id_, json.dumps(id_)) for id_ in self._ids], None)


class _Declared(MemoryRecordQuery):
    """An index that takes one field."""

    @property
    def searchable(self) -> frozenset[str]:
        return frozenset({"group"})


def previewed(world: MemoryWorld, query: object) -> Preview:
    body = {"subject": "products", **ADD, "query": query}
    return preview(world, TENANT, accept(parse(json.dumps(body)), world.operations, max_ids=1))


@pytest.mark.parametrize("what", [ask, previewed])
def test_c102_a_filter_on_a_field_that_is_not_declared_is_refused(
    what: Callable[..., object],
) -> None:
    world = walking_world()
    grouped(world, 3)
    world = replace(world, query=_Declared(world.store))
    before = world.store.snapshot()
    declared = r"'price' is not searchable; searchable are: group .*effects\.search_fields"
    with pytest.raises(Unprocessable, match=declared) as caught:
        what(world, query=PRICED)
    assert caught.value.field == "query"
    assert world.store.snapshot() == before
    assert what(world, query=GROUP)


def test_live_over_a_field_that_the_operation_writes_is_refused_by_name() -> None:
    world = walking_world()
    ids = grouped(world, 3)
    before = world.store.snapshot()
    with pytest.raises(Unprocessable, match="price") as caught:
        ask(world, query=PRICED, traversal="live")
    assert (caught.value.field, set(caught.value.names)) == ("traversal", {"price"})
    assert world.store.snapshot() == before
    assert prices(world, ids) == {10}


def test_a_walk_goes_on_through_long_stretches_without_a_match() -> None:
    world = walking_world(limits=Limits(chunk_size=10))
    grouped(world, 12)
    ids = fill(world, 300)
    world.records.load(TENANT, {"r9999": {"price": 10, "group": "g", "version": 1}})
    world = replace(world, query=MemoryRecordQuery(world.store, look_at=7))
    world.records.load(TENANT, {id_: {"price": 10, "version": 1} for id_ in ids[12:]})
    world.records.load(TENANT, {id_: {"price": 10, "group": "g", "version": 1} for id_ in ids[:12]})
    job = made(world, query=GROUP)
    run_next(world, Lane.BULK)
    ended = now(world, job)
    assert (ended.state, ended.total, ended.succeeded) == (State.SUCCEEDED, 13, 13)


def test_a_deployment_without_a_source_refuses() -> None:
    world = replace(walking_world(), query=None, uploads=None)  # type: ignore[arg-type]  # less than the in-memory world
    with pytest.raises(Unprocessable, match="takes no queries"):
        ask(world, query=PRICED)
    with pytest.raises(Unprocessable, match="takes no uploads"):
        ask(world, upload_id="0" * 32)


def test_a_finished_live_walk_does_not_begin_again_when_its_end_was_not_written() -> None:
    """Its length was noted; what comes later is another job's."""
    world = walking_world(limits=Limits(chunk_size=10))
    grouped(world, 25)
    job = made(world, query=GROUP, traversal="live")
    here, store = process(world)

    def down(action: str) -> None:
        if action.startswith("end_"):
            raise Transient(action)

    store.before = down
    run_next(here, Lane.BULK)
    left = now(world, job)
    assert (left.state, left.total, left.position) == (State.RUNNING, 25, 25)
    world.records.load(TENANT, {"z-late": {"price": 10, "group": "g", "version": 1}})
    world.runtime.sleep(60_000)
    run_next(world, Lane.BULK)
    ended = now(world, job)
    assert (ended.state, ended.total, ended.succeeded) == (State.SUCCEEDED, 25, 25)
    assert prices(world, ["z-late"]) == {10}


def test_cancel_and_retry_of_a_live_walk() -> None:
    world = walking_world(limits=Limits(chunk_size=10))
    ids = grouped(world, 30)
    world.records.load(TENANT, {ids[2]: {"price": "no number", "group": "g", "version": 1}})
    job = made(world, query=GROUP, traversal="live", tolerated_failure_percent=0)
    run_next(world, Lane.BULK)
    failed = now(world, job)
    assert (failed.state, failed.position, failed.failed) == (State.FAILED, 10, 1)
    world.records.load(TENANT, {"z-late": {"price": 10, "group": "g", "version": 1}})
    retried = control.retry(world, TENANT, job.id)
    assert isinstance(retried, Job)
    assert retried.total is None
    run_next(world, Lane.BULK)
    ended = now(world, job)
    assert (ended.total, ended.position, ended.succeeded, ended.failed) == (31, 31, 30, 1)
