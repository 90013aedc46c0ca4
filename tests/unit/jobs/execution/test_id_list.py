"""Writing an id list before the walk: whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.execution.id_list import write_id_list
from handlers.jobs.lifecycle import control
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import PAYLOAD_BLOCK, Limits
from handlers.jobs.words.states import State
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.uploads import MemoryUploadStore
from handlers.testing.world import MemoryWorld
from tests.support.jobs import TENANT, fill, now, prices, run_next
from tests.support.process import lose, nth, process
from tests.support.selections import GROUP, grouped, jsonl, made, nothing_left, upload
from tests.support.walks import walking_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


BLOCKS = 4
PADDED = PAYLOAD_BLOCK // 20
"""Ids that fill about one block."""


def large(world: MemoryWorld, count: int = 40) -> tuple[Job, list[str]]:
    """A job over a file of several blocks that repeats a few ids many times."""
    ids = fill(world, count)
    times = BLOCKS * PADDED * 20 // (9 * count)
    job = made(world, upload_id=upload(world, jsonl(ids * times)))
    assert job.upload is not None
    assert job.upload.size > (BLOCKS - 1) * PAYLOAD_BLOCK
    return job, ids


class _Uploads(MemoryUploadStore):
    """Does something before each read."""

    def __init__(self, inner: MemoryUploadStore, meanwhile: Callable[[int], object]) -> None:
        self.__dict__ = inner.__dict__
        self._meanwhile = meanwhile

    def read(self, name: str, version: str, offset: int, length: int) -> bytes:
        self._meanwhile(offset // PAYLOAD_BLOCK)
        return super().read(name, version, offset, length)


class _Payloads(MemoryPayloadStore):
    """Does something after an object was written."""

    def __init__(self, inner: MemoryPayloadStore, afterwards: Callable[[], object]) -> None:
        self.__dict__ = inner.__dict__
        self._afterwards = afterwards

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        size = super().put(name, blocks)
        self._afterwards()
        return size


def done(world: MemoryWorld, job: Job, ids: Sequence[str]) -> bool:
    ended = now(world, job)
    assert (ended.state, ended.total, ended.succeeded) == (State.SUCCEEDED, len(ids), len(ids))
    assert prices(world, list(ids)) == {11}
    return nothing_left(world)


@pytest.mark.parametrize("looks", [0, 1, 2, BLOCKS - 1])
def test_a_stop_in_the_middle_leaves_nothing_and_the_next_attempt_starts_again(looks: int) -> None:
    world = walking_world()
    job, ids = large(world)
    answers = iter([False] * looks + [True] * 100)
    decision = run_next(world, Lane.BULK, stopping=lambda: next(answers))
    assert isinstance(decision, KeepMessage)
    stopped = now(world, job)
    assert (stopped.state, stopped.payload, stopped.total, stopped.attempt) == (
        State.QUEUED,
        None,
        None,
        0,
    )
    assert not world.payloads.names()
    run_next(world, Lane.BULK)
    assert done(world, job, ids)


def test_a_cancel_in_the_middle_is_followed() -> None:
    world = walking_world()
    job, ids = large(world)

    def meanwhile(block: int) -> None:
        if block == 1:
            control.cancel(world, TENANT, job.id)

    run_next(replace(world, uploads=_Uploads(world.uploads, meanwhile)), Lane.BULK)
    assert now(world, job).state is State.CANCELLED
    assert prices(world, ids) == {10}
    assert nothing_left(world)


def test_a_pause_in_the_middle_is_followed_and_resumed() -> None:
    world = walking_world()
    job, ids = large(world)

    def meanwhile(block: int) -> None:
        if block == 1:
            control.pause(world, TENANT, job.id)

    run_next(replace(world, uploads=_Uploads(world.uploads, meanwhile)), Lane.BULK)
    paused = now(world, job)
    assert (paused.state, paused.payload) == (State.PAUSED, None)
    assert not world.payloads.names()
    control.resume(world, TENANT, job.id)
    run_next(world, Lane.BULK)
    assert done(world, job, ids)


def test_a_cancel_between_the_last_block_and_the_transaction_is_followed() -> None:
    world = walking_world()
    job, ids = large(world)
    payloads = _Payloads(world.payloads, lambda: control.cancel(world, TENANT, job.id))
    run_next(replace(world, payloads=payloads), Lane.BULK)
    assert now(world, job).state is State.CANCELLED
    assert prices(world, ids) == {10}
    assert nothing_left(world)


def begin_elsewhere(world: MemoryWorld, job: Job) -> Job:
    """Another worker's attempt, as if this one's lease had run out."""
    found = now(world, job)
    transition = begin_attempt(
        world, found, worker="w2", receipt="r2", expired=read_lease(world, found)
    )
    transaction, begun = transition.transaction, transition.after
    world.store.transact("begin", list(transaction.writes.values()))
    return begun


def test_a_replaced_workers_list_is_nobodys() -> None:
    world = walking_world()
    job, ids = large(world)
    payloads = _Payloads(world.payloads, lambda: begin_elsewhere(world, job))
    decision = run_next(replace(world, payloads=payloads), Lane.BULK)
    assert decision == KeepMessage("ownership lost", None)
    assert (now(world, job).payload, now(world, job).worker) == (None, "w2")
    assert not world.payloads.names()
    assert prices(world, ids) == {10}


def test_a_replaced_workers_late_list_changes_nothing_of_the_new_ones() -> None:
    world = walking_world()
    job, _ = large(world)
    lists: dict[str, bytes] = {}

    def taken_over() -> None:
        begun = begin_elsewhere(world, job)
        prepared = write_id_list(world, begun, lambda _: None)
        name = prepared.job.payload or ""
        lists[name] = world.payloads.read(name, 0, 10**9)

    run_next(
        replace(world, payloads=_Payloads(world.payloads, taken_over)),
        Lane.BULK,
    )
    [(name, content)] = lists.items()
    assert now(world, job).payload == name
    assert world.payloads.names() == {name}
    assert world.payloads.read(name, 0, 10**9) == content


def test_a_worker_replaced_in_the_middle_notices() -> None:
    world = walking_world()
    job, ids = large(world)
    blocks: list[int] = []

    def meanwhile(block: int) -> None:
        blocks.append(block)
        if block == 1:
            begin_elsewhere(world, job)

    decision = run_next(replace(world, uploads=_Uploads(world.uploads, meanwhile)), Lane.BULK)
    assert decision == KeepMessage("ownership lost", None)
    assert max(blocks) == 1
    assert not world.payloads.names()
    assert prices(world, ids) == {10}


def test_a_file_that_cannot_be_read_for_a_while_is_read_later() -> None:
    world = walking_world()
    job, ids = large(world)

    def meanwhile(block: int) -> None:
        if block == 2:
            raise Transient("down")

    decision = run_next(replace(world, uploads=_Uploads(world.uploads, meanwhile)), Lane.BULK)
    assert isinstance(decision, KeepMessage)
    assert (now(world, job).state, now(world, job).payload) == (State.QUEUED, None)
    world.runtime.sleep(60_000)
    assert isinstance(run_next(world, Lane.BULK), DeleteMessage)
    assert done(world, job, ids)


@pytest.mark.parametrize("action", ["list_written", "commit_chunk"])
def test_a_lost_reply_is_settled_by_reading(action: str) -> None:
    world = walking_world()
    job, ids = large(world)
    here, store = process(world)
    store.after = nth(1, action, lose)
    run_next(here, Lane.BULK)
    assert store.times(action) == 1
    assert done(world, job, ids)


def test_a_lost_reply_at_the_end_of_a_live_walk_is_settled_by_reading() -> None:
    world = walking_world()
    ids = grouped(world, 30)
    job = made(world, query=GROUP)
    here, store = process(world)
    store.after = nth(1, "total_known", lose)
    run_next(here, Lane.BULK)
    assert store.times("total_known") == 1
    assert done(world, job, ids)


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=80),
    st.lists(st.integers(0, 12), max_size=4),
    st.booleans(),
)
def test_whatever_interrupts_every_distinct_id_is_changed_once(
    numbers: list[int],
    stops: list[int],
    query: bool,  # noqa: FBT001  drawn
) -> None:
    world = walking_world(limits=Limits(chunk_size=7))
    ids = [f"r{n:04}" for n in dict.fromkeys(numbers)]
    world.records.load(TENANT, {id_: {"price": 10, "group": "g", "version": 1} for id_ in ids})
    job = (
        made(world, query=GROUP, traversal="snapshot")
        if query
        else made(world, upload_id=upload(world, jsonl(f"r{n:04}" for n in numbers)))
    )
    for looks in stops:
        if now(world, job).state is State.SUCCEEDED:
            break
        answers = iter([False] * looks + [True] * 200)
        run_next(world, Lane.BULK, stopping=lambda answers=answers: next(answers))
        counts = now(world, job)
        assert counts.position == counts.counts.done <= (counts.total or 0)
    if now(world, job).state is not State.SUCCEEDED:
        run_next(world, Lane.BULK)
    ended = now(world, job)
    assert ended.duplicates == (0 if query else len(numbers) - len(ids))
    assert done(world, job, ids)
