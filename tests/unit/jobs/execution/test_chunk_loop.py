"""The chunk loop against a store that refuses, loses replies and changes under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.chunk_loop import MAX_REPLANS, ChunkLoop
from handlers.jobs.execution.planning import Work
from handlers.jobs.execution.prefetch import DEPTH
from handlers.jobs.selection.id_sources import source_of
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.errors import (
    OutcomeUnknown,
    OwnershipLost,
    Reason,
    Refused,
    Transient,
    Why,
)
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.writes import Key, Put, Table, Update
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, new_job, now, prices, receive
from tests.support.results import stored_results

if TYPE_CHECKING:
    from handlers.jobs.execution.stopping import LoopEnd, StopReason
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.writes import Write

COUNT: Final = 100
BAD: Final = "r0037"


class Store(MemoryStore):
    """A store with something that happens around a chunk's transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[int] = []
        """How many records each attempt to commit wrote."""
        self.before: Callable[[Sequence[Write]], None] = lambda _: None
        self.after: Callable[[], None] = lambda: None

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        if action != "commit_chunk":
            return super().transact(action, writes)
        self.chunks.append(len(written(writes)))
        self.before(writes)
        super().transact(action, writes)
        self.after()
        return None


def written(writes: Sequence[Write]) -> list[str]:
    return [write.key.sk for write in writes if write.key.table is Table.RECORDS]


def world_of(store: Store, chunk: int = 100) -> MemoryWorld:
    made = memory_world(limits=Limits(chunk_size=min(chunk, 96), small_max_items=1000))
    return replace(made, store=store, records=MemoryRecordStore(store))


def begun(world: MemoryWorld, ids: list[str]) -> Job:
    job = new_job(world, ids)
    receipt = receive(world, Lane.SMALL).receipt
    transition = begin_attempt(world, job, worker="w", receipt=receipt, expired=None)
    transaction, after = transition.transaction, transition.after
    world.store.transact(transaction.action, list(transaction.writes.values()))
    return after


def walk(
    world: MemoryWorld, job: Job, should_stop: Callable[[Job], StopReason | None] = lambda _: None
) -> LoopEnd:
    operation = world.operations["adjust_number"]
    parameters = operation.parameters.model_validate({"field": "price", "add": 1})
    return ChunkLoop(world, Work(operation, parameters), source_of(world, job), should_stop).walk(
        job
    )


def reported(world: MemoryWorld, job: Job, kind: str = "failed") -> list[str]:
    return [entry["id"] for entry in stored_results(world, job.id, kind)]


@pytest.mark.parametrize("chunk", [96, 10, 1])
@pytest.mark.parametrize("told", [True, False], ids=["which one", "only that"])
def test_c42_one_bad_record_does_not_take_its_neighbours_with_it(chunk: int, *, told: bool) -> None:
    """The store says which write it can't take, or refuses the transaction without a word."""
    store = Store()

    def refuse_bad(writes: Sequence[Write]) -> None:
        if BAD in written(writes):
            bad = [told and write.key.sk == BAD for write in writes]
            invalid = Reason(Why.INVALID, message="too large")
            raise Refused([invalid if each or not told else None for each in bad])

    store.before = refuse_bad
    world = world_of(store, chunk)
    ids = fill(world, COUNT)
    job = begun(world, ids)
    walked = walk(world, job)
    assert walked.stop is None
    assert (walked.job.position, walked.job.succeeded, walked.job.failed) == (COUNT, COUNT - 1, 1)
    assert now(world, job).counts == walked.job.counts
    assert reported(world, job) == [BAD]
    assert prices(world, [id_ for id_ in ids if id_ != BAD]) == {11}
    assert prices(world, [BAD]) == {10}
    if chunk > 1 and not told:
        halvings = chunk.bit_length() + 1
        assert len(store.chunks) <= COUNT // chunk + 1 + 2 * halvings


@pytest.mark.parametrize("chunk", [96, 10, 1])
def test_c42_a_record_the_operation_cannot_change(chunk: int) -> None:
    world = world_of(Store(), chunk)
    ids = fill(world, COUNT)
    world.records.load(TENANT, {BAD: {"price": "malformed"}})
    job = begun(world, ids)
    walked = walk(world, job)
    assert (walked.job.succeeded, walked.job.failed) == (COUNT - 1, 1)
    assert reported(world, job) == [BAD]


def test_a_checkpoint_the_store_refuses_is_no_records_fault() -> None:
    store = Store()

    def refuse_all(writes: Sequence[Write]) -> None:
        raise Refused([Reason(Why.INVALID)] * len(writes))

    store.before = refuse_all
    world = world_of(store)
    job = begun(world, fill(world, 8))
    with pytest.raises(Transient, match="checkpoint"):
        walk(world, job)
    assert now(world, job).counts.done == 0
    assert prices(world, ["r0000"]) == {10}


@pytest.mark.parametrize("times", [1, MAX_REPLANS, MAX_REPLANS + 1, 100])
def test_a_record_somebody_else_changes_is_planned_again_up_to_three_times(times: int) -> None:
    store = Store()
    world = world_of(store)
    ids = fill(world, 5)
    changes = iter(range(times))

    def meddle(_: Sequence[Write]) -> None:
        if (n := next(changes, None)) is not None:
            touched = Update(
                Key(TENANT, "r0002", Table.RECORDS), set={"price": 100 + n, "version": 50 + n}
            )
            MemoryStore.transact(store, "somebody else", [touched])

    job = begun(world, ids)
    store.before = meddle
    walked = walk(world, job)
    given_up = times > MAX_REPLANS
    assert (walked.job.succeeded, walked.job.failed) == ((4, 1) if given_up else (5, 0))
    assert reported(world, job) == (["r0002"] if given_up else [])
    # What somebody else wrote is built upon, never overwritten.
    last = 100 + min(times, MAX_REPLANS + 2) - 1
    assert prices(world, ["r0002"]) == {last if given_up else last + 1}
    assert prices(world, ["r0000", "r0001", "r0003", "r0004"]) == {11}


def test_a_record_changed_after_it_was_read_ahead_is_read_again() -> None:
    """Its chunk is read while earlier ones commit, so that its plan may be two commits old."""
    store = Store()
    world = world_of(store, 10)
    ids = fill(world, 40)
    late = ids[10 * DEPTH]
    reads: list[Sequence[str]] = []

    class Records(MemoryRecordStore):
        def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
            reads.append(ids)
            return super().read(tenant, ids)

    world = replace(world, records=Records(store))

    def change_what_was_read(_: Sequence[Write]) -> None:
        if len(store.chunks) == 1:
            world.runtime.sleep(1)  # so that what may be read ahead is
            assert any(late in chunk for chunk in reads)
            touched = Update(Key(TENANT, late, Table.RECORDS), set={"price": 100, "version": 50})
            MemoryStore.transact(store, "somebody else", [touched])

    job = begun(world, ids)
    store.before = change_what_was_read
    walked = walk(world, job)
    assert (walked.job.succeeded, walked.job.failed) == (40, 0)
    assert prices(world, [late]) == {101}
    assert prices(world, [id_ for id_ in ids if id_ != late]) == {11}


def test_a_record_that_is_deleted_meanwhile_is_skipped() -> None:
    store = Store()
    world = world_of(store)
    ids = fill(world, 3)

    def delete(_: Sequence[Write]) -> None:
        store._items.pop(Key(TENANT, "r0001", Table.RECORDS), None)

    job = begun(world, ids)
    store.before = delete
    walked = walk(world, job)
    assert (walked.job.succeeded, walked.job.skipped) == (2, 1)
    assert reported(world, job, "skipped") == ["r0001"]


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_reply_is_settled_by_the_checkpoint(times: int, *, applied: bool) -> None:
    store = Store()
    world = world_of(store, 10)
    ids = fill(world, 30)
    lost = iter(range(times))

    def lose(*_: object) -> None:
        if next(lost, None) is not None:
            raise OutcomeUnknown

    if applied:
        store.after = lose
    else:
        store.before = lose
    job = begun(world, ids)
    walked = walk(world, job)
    assert (walked.job.position, walked.job.succeeded) == (30, 30)
    assert now(world, job).succeeded == 30
    assert prices(world, ids) == {11}


def test_c41_a_chunk_that_is_sent_again_is_refused() -> None:
    """Of records that are not there, so that none of theirs is the condition that refuses it."""
    store = Store()
    sent: list[Sequence[Write]] = []
    store.before = sent.append
    world = world_of(store, 10)
    job = begun(world, [f"gone{number}" for number in range(20)])
    assert walk(world, job).job.skipped == 20
    before = store.snapshot()
    for writes in tuple(sent):
        with pytest.raises(Refused):
            store.transact("commit_chunk", writes)
    assert store.snapshot() == before


def test_who_lost_the_lease_writes_nothing() -> None:
    """C05: it wakes in the middle of a chunk, and finds somebody else on the subject."""
    store = Store()
    world = world_of(store, 10)
    ids = fill(world, 30)
    job = begun(world, ids)

    def take_over(_: Sequence[Write]) -> None:
        if len(store.chunks) == 2:
            from handlers.jobs.storage.control_table import lease_key  # noqa: PLC0415  # only this test needs it

            taken = Update(lease_key(TENANT, "products"), set={"fence": job.fence + 1})
            MemoryStore.transact(store, "taken", [taken])

    store.before = take_over
    with pytest.raises(OwnershipLost):
        walk(world, job)
    assert len(store.chunks) == 2
    assert now(world, job).position == 10
    assert prices(world, ids[:10]) == {11}
    assert prices(world, ids[10:]) == {10}


def test_contention_is_waited_out() -> None:
    store = Store()
    world = world_of(store)
    tries = iter(range(3))

    def contend(writes: Sequence[Write]) -> None:
        if next(tries, None) is not None:
            raise Refused([Reason(Why.CONFLICT)] * len(writes))

    job = begun(world, fill(world, 5))
    started = world.runtime.now()
    store.before = contend
    assert walk(world, job).job.succeeded == 5
    assert len(store.chunks) == 4
    assert world.runtime.now() > started


def test_c57_an_id_that_comes_again_in_the_same_or_another_chunk_is_changed_once() -> None:
    """Requests are freed of repeats; a stored list might still hold some."""
    world = world_of(Store(), 3)
    fill(world, 3)
    ids = ["r0000", "r0000", "r0001", "r0002", "r0000", "r0001"]
    job = begun(world, ["r0000"]).model_copy(update={"ids": tuple(ids), "total": len(ids)})
    walked = walk(world, job)
    assert (walked.job.position, walked.job.succeeded, walked.job.skipped) == (6, 3, 3)
    assert prices(world, ["r0000", "r0001", "r0002"]) == {11}


def test_a_record_without_a_version_gets_one() -> None:
    store = Store()
    world = world_of(store)
    MemoryStore.transact(store, "load", [Put(Key(TENANT, "plain", Table.RECORDS), {"price": 10})])
    walked = walk(world, begun(world, ["plain"]))
    assert walked.job.succeeded == 1
    assert store.snapshot(Table.RECORDS)[Key(TENANT, "plain", Table.RECORDS)]["version"] == 1
