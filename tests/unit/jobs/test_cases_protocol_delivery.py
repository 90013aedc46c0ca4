"""Cases of messages that come again while, or after, their job runs (C01, C02, C05, C08)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.aws.protection import protection_from
from handlers.jobs.execution.decisions import KeepMessage, apply_decision
from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import Busy, Created
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, SECOND, LaneTiming, ms
from handlers.slots import Slot
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import create, fill, new_job, now, prices, receive
from tests.support.process import Killed, die, nth, process

if TYPE_CHECKING:
    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.words.ports import Delivery
    from handlers.testing.job_store import MemoryStore
    from handlers.testing.runtime import ManualRuntime

CHUNK = 10
BULK = Lane.BULK


class SlowRecords(MemoryRecordStore):
    """Every read takes so long (ms)."""

    def __init__(self, store: MemoryStore, runtime: ManualRuntime, takes: int) -> None:
        super().__init__(store)
        self._runtime = runtime
        self._takes = takes

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        self._runtime.sleep(self._takes)
        return super().read(tenant, ids)


def bulk_world(timing: LaneTiming = SHORT.bulk) -> MemoryWorld:
    """Every job goes to the bulk lane."""
    grace = timing.visibility + timing.heartbeat + SHORT.clock_skew + 1
    times = SHORT.model_copy(update={"bulk": timing, "takeover_grace": max(20, grace)})
    return memory_world(timing=times, limits=Limits(chunk_size=CHUNK, small_max_items=1))


def slow(world: MemoryWorld, takes: int) -> MemoryWorld:
    return replace(world, records=SlowRecords(world.store, world.runtime, takes))


def consume(world: MemoryWorld, name: str, over: Callable[[], bool]) -> list[Delivery]:
    """Receive one message after another and settle each; returns what was received."""
    taken = []
    queue, begun = world.queues[BULK], world.runtime.now()
    while not over():
        assert world.runtime.now() < begun + HOUR, "it never ends"
        for delivery in queue.receive(1, 1):
            taken.append(delivery)
            apply_decision(queue, delivery, on_message(world, delivery, Worker(name)))
    return taken


def ended(world: MemoryWorld, job: Job) -> Callable[[], bool]:
    """The job has ended and its message is gone."""
    return lambda: now(world, job).state.terminal and not world.queues[BULK].snapshot()


def beside(world: MemoryWorld, job: Job, name: str) -> list[Delivery]:
    """A second consumer in the background; the list grows with what it receives."""
    taken: list[Delivery] = []

    def run() -> None:
        taken.extend(consume(world, name, ended(world, job)))

    world.runtime.spawn(name, run)
    return taken


# --- C01: nothing is taken that is not started ------------------------------------------------


def test_c01_a_slot_takes_no_message_that_it_does_not_start() -> None:
    """Three jobs of 25 s each, hidden for 30 s, and one busy slot beside an idle one."""
    timing = LaneTiming(heartbeat=10, lease_ttl=30, visibility=30)
    world = slow(bulk_world(timing), 25 * SECOND)
    queue = Noting(world.runtime, timing.visibility)
    world = replace(world, queues={**world.queues, BULK: queue})
    ids = fill(world, 3 * CHUNK)
    parts = [ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK)]
    jobs = [new_job(world, part, f"s{n}") for n, part in enumerate(parts)]
    # The tenant's third job is held until the first has ended; here all are in the queue.
    queue.send([message_for(job) for job in jobs[2:]])
    stopping = threading.Event()

    def stop_at_the_end() -> None:
        while not all(now(world, job).state.terminal for job in jobs):
            world.runtime.sleep(SECOND)
        stopping.set()

    world.runtime.spawn("stop", stop_at_the_end)
    protection = protection_from({}, world.telemetry)
    Slot(world, "slot", stopping, protection, 1).run()
    assert queue.most_at_once == 1
    assert [now(world, job).state for job in jobs] == [State.SUCCEEDED] * 3
    assert prices(world, ids) == {11}
    assert world.telemetry.actions().count("attempt_begun") == 3
    assert set(queue.receives.values()) == {1}


class Noting(MemoryLaneQueue):
    """Notes how many messages were in somebody's hands at once, and each one's receives."""

    def __init__(self, runtime: ManualRuntime, visibility: int) -> None:
        super().__init__(runtime, name="bulk", visibility=visibility)
        self.most_at_once = 0
        self.receives: dict[str, int] = {}
        self._hands: set[str] = set()

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        taken = super().receive(limit, wait_seconds)
        for delivery in taken:
            self.receives[delivery.message_id] = delivery.receive_count
            self._hands.add(delivery.receipt)
        self.most_at_once = max(self.most_at_once, len(self._hands))
        return taken

    def delete(self, receipt: str) -> None:
        super().delete(receipt)
        self._hands.discard(receipt)


# --- C02: a second consumer while the first works ---------------------------------------------


def test_c02_a_message_that_comes_back_too_early_is_kept_by_its_live_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The heartbeat forgets the message, so it comes back; and the owner's late delete, with its
    old receipt, deletes nothing."""
    monkeypatch.setattr(Heartbeat, "_keep_message", lambda _: None)
    world = bulk_world()
    ids = fill(world, 4 * CHUNK)
    job = new_job(world, ids)
    second = beside(world, job, "second")
    takes = ms(world.timing.bulk.visibility)
    first = consume(slow(world, takes), "first", ended(world, job))
    done = now(world, job)
    assert (done.state, done.attempt, done.succeeded) == (State.SUCCEEDED, 1, len(ids))
    assert prices(world, ids) == {11}
    assert len(first) + len(second) > 2
    actions = world.telemetry.actions()
    assert actions.count("attempt_begun") == 1
    assert actions.count("redelivery_extended") >= 1
    assert actions.count("job_ended") == 1
    assert not world.queues[BULK].snapshot()
    assert not world.dead_letters[BULK].snapshot()


def test_c02_without_any_heartbeat_the_second_goes_on_and_the_first_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lease has run out as well: the same job goes on in other hands, each record once."""
    monkeypatch.setattr(Heartbeat, "_run", lambda _: None)
    world = bulk_world()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)
    beside(world, job, "second")
    # Longer than the visibility, so that the first is in the middle of its first chunk.
    consume(slow(world, 2 * ms(world.timing.bulk.visibility)), "first", ended(world, job))
    done = now(world, job)
    assert (done.state, done.attempt, done.succeeded) == (State.SUCCEEDED, 2, len(ids))
    assert prices(world, ids) == {11}
    actions = world.telemetry.actions()
    assert actions.count("ownership_lost") == 1
    assert actions.count("job_ended") == 1


def test_c02_every_message_of_a_running_job_is_kept_hidden() -> None:
    """Recovery may have sent a second one. A forgotten one would be received, in turn with the
    other, until it is a dead letter."""
    world = bulk_world()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)
    world.queues[BULK].send([message_for(job), message_for(job)])
    beside(world, job, "second")
    consume(slow(world, 5 * ms(world.timing.bulk.visibility)), "first", ended(world, job))
    assert now(world, job).state is State.SUCCEEDED
    # Each of the two others is handed over once; a beat knows only the newest receipt, so that one
    # that came between two beats is handed over again.
    assert 2 <= world.telemetry.actions().count("redelivery_extended") <= 4
    assert prices(world, ids) == {11}


# --- C05: the old copy is fenced at its next write --------------------------------------------


@pytest.mark.parametrize("another_job", [False, True])
def test_c05_a_worker_that_was_suspended_writes_nothing_when_it_wakes(*, another_job: bool) -> None:
    world = bulk_world()
    ids = fill(world, 6 * CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    before_waking: list[object] = []

    def others() -> None:
        if another_job:
            world.runtime.sleep(ms(world.timing.bulk.lease_ttl + world.timing.takeover_grace + 1))
            taken = create(world, ids)
            assert isinstance(taken, Created)
            consume(world, "other", ended(world, taken.job))
        else:
            world.runtime.sleep(ms(world.timing.bulk.visibility))
            consume(world, "other", ended(world, job))
        before_waking.append((world.store.snapshot(), world.queues[BULK].snapshot()))

    store.before = nth(3, "commit_chunk", lambda: store.suspended_while(others))
    decision = on_message(here, receive(world, BULK), Worker("suspended"))
    assert decision == KeepMessage("ownership lost", None)
    assert before_waking == [(world.store.snapshot(), world.queues[BULK].snapshot())]
    assert store.times("commit_chunk") == 2
    after = now(world, job)
    if another_job:
        assert (after.state, after.end_reason) == (State.FAILED, EndReason.TAKEN_OVER)
        assert after.position == 2 * CHUNK
        assert prices(world, ids[: 2 * CHUNK]) == {12}
        assert prices(world, ids[2 * CHUNK :]) == {11}
    else:
        assert (after.state, after.succeeded, after.attempt) == (State.SUCCEEDED, len(ids), 2)
        assert prices(world, ids) == {11}


def test_c05_it_writes_nothing_either_when_the_next_one_has_only_begun() -> None:
    """The job is RUNNING at the same position as before: only the fence is another one."""
    world = bulk_world()
    ids = fill(world, 6 * CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    other, others_store = process(world)
    others_store.before = nth(1, "commit_chunk", die)

    def begin() -> None:
        world.runtime.sleep(ms(world.timing.bulk.visibility))
        with pytest.raises(Killed):
            on_message(other, receive(world, BULK), Worker("other"))

    store.before = nth(3, "commit_chunk", lambda: store.suspended_while(begin))
    decision = on_message(here, receive(world, BULK), Worker("suspended"))
    assert decision == KeepMessage("ownership lost", None)
    assert store.times("commit_chunk") == 2
    left = now(world, job)
    assert (left.state, left.position, left.attempt) == (State.RUNNING, 2 * CHUNK, 2)
    assert prices(world, ids[2 * CHUNK :]) == {10}
    world.runtime.sleep(ms(world.timing.bulk.visibility))
    consume(world, "next", ended(world, job))
    assert prices(world, ids) == {11}


# --- C08: faults of the heartbeat -------------------------------------------------------------


def failing_beats(world: MemoryWorld, count: int) -> tuple[MemoryWorld, list[int]]:
    """A process whose next beats fail; when each of its chunks was committed (ms)."""
    here, store = process(world)
    left = count

    def before(action: str) -> None:
        nonlocal left
        if action == "beat" and left:
            left -= 1
            raise Transient("throttled")

    commits: list[int] = []

    def after(action: str) -> None:
        if action == "commit_chunk":
            commits.append(world.runtime.now())

    store.before, store.after = before, after
    return here, commits


def test_c08a_a_few_failed_beats_cost_nothing() -> None:
    world = bulk_world()
    ids = fill(world, 8 * CHUNK)
    job = new_job(world, ids)
    here, _ = failing_beats(world, 2)
    answers: list[object] = []

    def ask() -> None:
        while not now(world, job).state.terminal:
            world.runtime.sleep(SECOND)
            if not now(world, job).state.terminal:
                answers.append(create(world, ids))

    world.runtime.spawn("asks", ask)
    decision = run_slowly(here, 3 * SECOND)
    done = now(world, job)
    assert decision.why == "succeeded"
    assert (done.state, done.attempt, done.succeeded) == (State.SUCCEEDED, 1, len(ids))
    assert "beat_failed" in world.telemetry.actions()
    assert answers
    assert set(answers) <= {Busy(job.id, State.QUEUED), Busy(job.id, State.RUNNING)}


def test_c08b_without_beats_for_a_lease_the_worker_stops_at_the_next_chunk() -> None:
    """Only the chunk it is in may still be written, as long as nobody else has the job."""
    world = bulk_world()
    ids = fill(world, 20 * CHUNK)
    job = new_job(world, ids)
    here, commits = failing_beats(world, 10**6)
    begun, takes = world.runtime.now(), 3 * SECOND
    decision = run_slowly(here, takes)
    assert decision == KeepMessage("ownership lost", None)
    lease_end = begun + ms(world.timing.bulk.lease_ttl)
    assert max(commits) <= lease_end + takes
    assert sum(at > lease_end for at in commits) <= 1
    stopped = now(world, job)
    assert (stopped.state, stopped.position) == (State.RUNNING, len(commits) * CHUNK)
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.expires_at == lease_end
    world.runtime.sleep(ms(world.timing.bulk.visibility))
    consume(world, "next", ended(world, job))
    assert prices(world, ids) == {11}


def run_slowly(world: MemoryWorld, takes: int) -> Decision:
    """Run the next message; every chunk takes so long (ms)."""
    delivery = receive(world, BULK)
    return on_message(slow(world, takes), delivery, Worker("w1"))
