"""Bulk jobs take turns: what an attempt calls, when it gives way, and what stays behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.turns import AT_ONCE, PUT_OFF, STANDS_FREE, FreeSlot, waiters_of
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.waiting import wait_now
from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import execute
from handlers.jobs.transitions.shares import charge_share, read_share
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import read_pointer
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import SECOND, ms
from handlers.jobs.words.turns import OVERDUE, Share
from handlers.jobs.words.writes import Index
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import (
    TENANT,
    begin,
    fill,
    lease_of,
    minutes,
    new_job,
    now,
    prices,
    receive,
    run_next,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import Delivery
    from handlers.jobs.words.writes import Item, Key

SLICE: Final = 5
CHUNK: Final = 10
LIMITS: Final = Limits(small_max_items=1, chunk_size=CHUNK, tenant_slots_bulk=50)


@pytest.fixture
def world() -> MemoryWorld:
    """Reading a chunk's records takes a second."""
    return sliced(SLICE)


def sliced(seconds: float) -> MemoryWorld:
    timing = SHORT.model_copy(update={"slice": seconds})
    world = memory_world(limits=LIMITS, timing=timing)
    read = world.records.read

    def slowly(tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        world.runtime.sleep(SECOND)
        return read(tenant, ids)

    world.records.read = slowly  # type: ignore[method-assign]
    return world


def calls(world: MemoryWorld, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the store is asked beside jobs, leases and transactions."""
    asked: list[str] = []
    query, get = world.store.query, world.store.get

    def queried(index: Index, partition: str, **more: object) -> object:
        asked.append(f"{index}:{partition}")
        return query(index, partition, **more)  # type: ignore[arg-type]

    def got(key: Key) -> Item | None:
        if key.sk.startswith("SHARE"):
            asked.append(key.sk)
        return get(key)

    monkeypatch.setattr(world.store, "query", queried)
    monkeypatch.setattr(world.store, "get", got)
    return asked


def waiting(world: MemoryWorld) -> list[str]:
    page = world.store.query(Index.HELD, control_table.waiting_partition(Lane.BULK))
    return [str(found.item["id"]) for found in page.found]


def test_nobody_waits_so_no_slice_ends_and_each_costs_one_call(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(world, fill(world, 20 * CHUNK))
    asked = calls(world, monkeypatch)
    began = world.runtime.now()
    assert run_next(world, Lane.BULK) == DeleteMessage("succeeded", "bulk-1#1")
    slices = (world.runtime.now() - began) / (SLICE * SECOND)
    assert slices > 3
    assert set(asked) == {"held:#bulk"}
    assert 1 < len(asked) <= slices + 1
    assert now(world, job).state is State.SUCCEEDED
    assert read_share(world, TENANT) == Share()


def test_a_job_gives_way_at_a_chunk_boundary_and_goes_on_where_it_stopped(
    world: MemoryWorld,
) -> None:
    ids = fill(world, 20 * CHUNK)
    long, short = new_job(world, ids, "long"), new_job(world, ids[:CHUNK], "short")
    receipt = world.queues[Lane.BULK].snapshot()[0].message_id
    assert run_next(world, Lane.BULK) == DeleteMessage("slice", f"{receipt}#1")
    gave_way = now(world, long)
    assert (gave_way.state, gave_way.waits_for) == (State.QUEUED, Waiting.SLICE)
    assert 0 < gave_way.position < len(ids)
    assert gave_way.position % CHUNK == 0
    assert (gave_way.attempt, gave_way.has_slot) == (0, True)
    lease = lease_of(world, long)
    assert (lease.job_id, lease.expires_at) == (long.id, None)
    assert waiting(world) == [short.id, long.id]
    wait = wait_now(world, gave_way)
    assert wait is not None
    assert wait.ahead == 1
    run_next(world, Lane.BULK)
    assert now(world, short).state is State.SUCCEEDED
    run_next(world, Lane.BULK)
    assert now(world, long).state is State.SUCCEEDED
    assert prices(world, ids[CHUNK:]) == {11}
    assert prices(world, ids[:CHUNK]) == {12}
    assert waiting(world) == []


def test_without_slices_a_job_keeps_its_slot() -> None:
    """The control of the test above."""
    world = sliced(0)
    ids = fill(world, 20 * CHUNK)
    long, short = new_job(world, ids, "long"), new_job(world, ids[:CHUNK], "short")
    run_next(world, Lane.BULK)
    assert now(world, long).state is State.SUCCEEDED
    assert now(world, short).state is State.QUEUED


def test_many_hand_overs_leave_nothing_behind(world: MemoryWorld) -> None:
    ids = fill(world, 80 * CHUNK)
    jobs = [new_job(world, ids[: 40 * CHUNK], "a"), new_job(world, ids[40 * CHUNK :], "b")]
    for _ in range(200):
        if all(now(world, job).state.terminal for job in jobs):
            break
        if world.queues[Lane.BULK].depth().waiting:
            run_next(world, Lane.BULK)
        world.runtime.sleep(SECOND)
    given = world.telemetry.actions().count("handed_over")
    assert given >= 10
    for job in jobs:
        ended = now(world, job)
        assert (ended.state, ended.attempt, ended.retries) == (State.SUCCEEDED, 1, 0)
    assert prices(world, ids) == {11}
    assert not any(queue.snapshot() for queue in world.queues.values())
    assert not any(queue.snapshot() for queue in world.dead_letters.values())
    rows = [key.sk for key in world.store.snapshot() if key.sk.startswith("DISPATCH")]
    assert rows == []
    slots = world.store.get(control_table.slots_key(TENANT, Lane.BULK)) or {}
    assert slots["in_flight"] == 0
    minutes(world, 2)
    assert waiting(world) == []


def test_an_attempt_gives_way_only_after_a_chunk_of_its_own() -> None:
    world = sliced(0.001)
    ids = fill(world, 6 * CHUNK)
    jobs = [new_job(world, ids[: 3 * CHUNK], "a"), new_job(world, ids[3 * CHUNK :], "b")]
    before = [now(world, job).position for job in jobs]
    for _ in range(2):
        run_next(world, Lane.BULK)
    assert [now(world, job).position - at for job, at in zip(jobs, before, strict=True)] == [
        CHUNK,
        CHUNK,
    ]


def test_a_lane_that_cannot_be_looked_at_stops_no_job(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fill(world, 20 * CHUNK)
    long = new_job(world, ids, "long")
    new_job(world, ids[:1], "short")

    def fails(*_: object, **__: object) -> None:
        raise Transient("down")

    monkeypatch.setattr(world.store, "query", fails)
    run_next(world, Lane.BULK)
    assert now(world, long).state is State.SUCCEEDED


def test_a_short_job_in_a_full_lane_is_charged_too(world: MemoryWorld) -> None:
    """Else a tenant with many short jobs would have the lane to itself."""
    ids = fill(world, 2 * CHUNK)
    new_job(world, ids[:CHUNK], "a")
    new_job(world, ids[CHUNK:], "b")
    world.runtime.sleep(AT_ONCE)
    run_next(world, Lane.BULK)
    assert read_share(world, TENANT).used > 0
    charged = read_share(world, TENANT)
    run_next(world, Lane.BULK)
    assert read_share(world, TENANT) == charged


# --- deliveries -------------------------------------------------------------------------------


def of_another(world: MemoryWorld, job: Job, tenant: str) -> None:
    """Another tenant's job waits since the same time as this one."""
    item = dict(world.store.get(control_table.job_key(job.id)) or {})
    other = "f" * 32
    world.store._items[control_table.job_key(other)] = {**item, "id": other, "tenant": tenant}


@pytest.fixture
def ahead(world: MemoryWorld) -> Job:
    """A queued job whose tenant has used a slice more than another one that waits."""
    job = new_job(world, fill(world, CHUNK))
    of_another(world, job, "other")
    used = Share(SLICE * SECOND, world.runtime.now())
    execute(world, charge_share(TENANT, Share(), used))
    world.runtime.sleep(AT_ONCE)
    return job


PUT_OFF_FOR: Final = "put off for a job whose turn it is"
HIDDEN: Final = KeepMessage(PUT_OFF_FOR, PUT_OFF)


def offered(world: MemoryWorld, slot: FreeSlot | None, times: int) -> list[Decision]:
    """What becomes of the next message, each time it is visible again."""
    seen = []
    for _ in range(times):
        seen.append(run_next(world, Lane.BULK, slot=slot))
        world.runtime.sleep(PUT_OFF * SECOND)
    return seen


def test_a_slot_stands_free_for_a_job_whose_turn_it_is_but_not_for_ever(
    world: MemoryWorld, ahead: Job
) -> None:
    """The other job has no message: no slot may wait for it in vain."""
    times = STANDS_FREE // (PUT_OFF * SECOND)
    seen = offered(world, FreeSlot(), times + 1)
    assert seen[:-1] == [HIDDEN] * times
    assert now(world, ahead).state is State.SUCCEEDED
    assert now(world, ahead).attempt == 1


def test_every_slot_stands_free_for_so_long(world: MemoryWorld, ahead: Job) -> None:
    """However often a message was put off before: else the jobs of a tenant with many of them would
    run before their turn once each has been put off."""
    times = STANDS_FREE // (PUT_OFF * SECOND)
    for _ in range(3):
        assert offered(world, FreeSlot(), times)[-1].why.startswith(PUT_OFF_FOR)
    assert now(world, ahead).state is State.QUEUED


def test_a_slot_that_waited_in_vain_takes_any_job_for_a_slice() -> None:
    slot, slice_ms = FreeSlot(), SLICE * SECOND
    assert slot.waits(0, slice_ms)
    assert slot.waits(STANDS_FREE - 1, slice_ms)
    in_vain = STANDS_FREE
    assert not slot.waits(in_vain, slice_ms)
    assert not slot.waits(in_vain + slice_ms - 1, slice_ms)
    assert slot.waits(in_vain + slice_ms, slice_ms)
    assert slot.waits(in_vain + slice_ms + STANDS_FREE - 1, slice_ms)
    assert not slot.waits(in_vain + slice_ms + STANDS_FREE, slice_ms)


def test_a_job_whose_turn_it_is_ends_a_slots_wait() -> None:
    slot, slice_ms = FreeSlot(), SLICE * SECOND
    assert slot.waits(0, slice_ms)
    slot.taken()
    assert slot.waits(STANDS_FREE, slice_ms)
    assert slot.waits(2 * STANDS_FREE - 1, slice_ms)


def test_a_job_whose_turn_it_is_is_told_to_the_slot(world: MemoryWorld, ahead: Job) -> None:
    slot = FreeSlot()
    offered(world, slot, 1)
    execute(world, charge_share(TENANT, read_share(world, TENANT), Share()))
    run_next(world, Lane.BULK, slot=slot)
    assert now(world, ahead).state is State.SUCCEEDED
    assert slot.waits(world.runtime.now() + STANDS_FREE - 1, SLICE * SECOND)


def test_a_worker_without_a_slot_of_its_own_takes_any_job(world: MemoryWorld, ahead: Job) -> None:
    run_next(world, Lane.BULK)
    assert now(world, ahead).state is State.SUCCEEDED


def test_where_receives_are_for_attempts_a_fresh_message_is_put_off(
    world: MemoryWorld, ahead: Job
) -> None:
    """A dead letter after some put-offs would be a job that fails because others had their turn."""
    timing = world.timing.bulk
    for_turns = timing.max_receive_count - timing.max_attempts - 1
    assert for_turns > 1
    group = world.queues[Lane.BULK].snapshot()[0].group
    for _ in range(3):
        seen = [offered(world, FreeSlot(), 1)[0] for _ in range(for_turns + 1)]
        assert seen == [HIDDEN] * for_turns + [DeleteMessage(f"{PUT_OFF_FOR}: sent again")]
        [fresh] = world.queues[Lane.BULK].snapshot()
        assert (fresh.receive_count, fresh.group) == (0, group)
    assert now(world, ahead).state is State.QUEUED


def test_a_fresh_message_of_a_job_that_was_put_off_comes_not_as_a_new_job(
    world: MemoryWorld, ahead: Job
) -> None:
    """It is received at once, by a slot that stands free."""
    used_up = world.timing.bulk.max_receive_count - world.timing.bulk.max_attempts
    for _ in range(used_up - 1):
        offered(world, FreeSlot(), 1)
    assert isinstance(run_next(world, Lane.BULK, slot=FreeSlot()), DeleteMessage)
    assert run_next(world, Lane.BULK, slot=FreeSlot()) == HIDDEN
    assert now(world, ahead).state is State.QUEUED


def test_a_job_runs_before_its_turn_when_no_fresh_message_can_be_sent(
    world: MemoryWorld, ahead: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    used_up = world.timing.bulk.max_receive_count - world.timing.bulk.max_attempts
    for _ in range(used_up - 1):
        offered(world, FreeSlot(), 1)

    def fails(_: object) -> frozenset[int]:
        raise Transient("down")

    with monkeypatch.context() as patched:
        patched.setattr(world.queues[Lane.BULK], "send", fails)
        run_next(world, Lane.BULK, slot=FreeSlot())
    assert now(world, ahead).state is State.SUCCEEDED


def test_an_overdue_job_is_not_put_off(world: MemoryWorld, ahead: Job) -> None:
    world.runtime.sleep(ms(OVERDUE * SLICE))
    run_next(world, Lane.BULK, slot=FreeSlot())
    assert now(world, ahead).state is State.SUCCEEDED


def test_a_new_job_that_meets_a_free_slot_looks_at_nobody(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(world, fill(world, CHUNK))
    of_another(world, job, "other")
    asked = calls(world, monkeypatch)
    run_next(world, Lane.BULK)
    assert asked == []
    assert now(world, job).state is State.SUCCEEDED


def test_a_job_that_gave_way_looks_though_its_fresh_message_comes_at_once(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fill(world, 21 * CHUNK)
    long = new_job(world, ids[: 20 * CHUNK], "long")
    new_job(world, ids[20 * CHUNK :], "other")
    run_next(world, Lane.BULK)
    assert now(world, long).waiting_reason is Waiting.SLICE
    asked = calls(world, monkeypatch)
    deliveries = {read_pointer(each.body).job_id: each for each in _received(world)}
    on_message(world, deliveries[long.id], Worker("w", slot=FreeSlot()))
    assert asked[0].endswith("#bulk")


def _received(world: MemoryWorld) -> Sequence[Delivery]:
    return world.queues[Lane.BULK].receive(10, 0)


def test_a_small_job_looks_at_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()
    new_job(world, fill(world, 2))
    asked = calls(world, monkeypatch)
    run_next(world)
    assert asked == []


# --- who is seen waiting ----------------------------------------------------------------------


def test_a_retry_is_seen_when_it_is_due(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fill(world, 2 * CHUNK)
    job, other = new_job(world, ids[:CHUNK], "a"), new_job(world, ids[CHUNK:], "b")

    def fails(*_: object) -> Mapping[str, object]:
        raise Transient("down")

    with monkeypatch.context() as patched:
        patched.setattr(world.records, "read", fails)
        run_next(world, Lane.BULK)
    retry_at = now(world, job).retry_at
    assert retry_at is not None
    assert [each.job_id for each in waiters_of(world, other)] == []
    world.runtime.sleep(max(0, retry_at - world.runtime.now()))
    assert [(each.job_id, each.since) for each in waiters_of(world, other)] == [(job.id, retry_at)]


def test_a_job_without_a_worker_is_seen_when_recovery_sends_it_again(world: MemoryWorld) -> None:
    ids = fill(world, 2 * CHUNK)
    job = begin(world, new_job(world, ids))
    assert waiting(world) == []
    timing = world.timing.bulk
    world.runtime.sleep(ms(timing.lease_ttl + timing.visibility + 1))
    Recovery(world).run()
    assert waiting(world) == [job.id]
    assert now(world, job).waits_for is Waiting.WORKER_LOST
    delivery = receive(world, Lane.BULK)
    on_message(world, delivery, Worker("w2"))
    assert waiting(world) == []
    assert now(world, job).state is State.SUCCEEDED
