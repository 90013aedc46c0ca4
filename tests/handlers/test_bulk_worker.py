"""The bulk worker's slots: what they take, what they give back, and what they survive."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from handlers import slots
from handlers.aws.protection import Protection
from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import Busy, Created, SubmitResult, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import read_job, read_lease
from handlers.jobs.words.errors import ReceiptExpired, Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.slots import Slot
from handlers.testing.job_store import MemoryStore
from handlers.testing.telemetry import MemoryTelemetry
from handlers.testing.world import MemoryWorld, memory_world
from tests.handlers.deployment import TENANT, job

if TYPE_CHECKING:
    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.execution.stopping import Worker
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.messages import Message
    from handlers.jobs.words.ports import Delivery, Depth, World
    from handlers.jobs.words.writes import Write
    from handlers.testing.lane_queue import MemoryLaneQueue

CHUNK = 10


@dataclass
class Line:
    """The bulk queue with somebody watching it."""

    inner: MemoryLaneQueue
    stopping: threading.Event
    limits: list[int] = field(default_factory=list)
    """What each receive asked for."""
    hidden: list[int] = field(default_factory=list)
    """Seconds of each change of visibility."""
    on_receive: Callable[[], None] = lambda: None
    """Runs between the receive and its answer."""
    on_settle: Callable[[], None] = lambda: None

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        return self.inner.send(messages)

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        self.limits.append(limit)
        found = self.inner.receive(limit, 0)
        self.on_receive()
        if not found:
            self.stopping.set()  # nothing is left to see
        return found

    def set_visibility(self, receipt: str, seconds: int) -> None:
        self.on_settle()
        self.hidden.append(seconds)
        self.inner.set_visibility(receipt, seconds)

    def delete(self, receipt: str) -> None:
        self.on_settle()
        self.inner.delete(receipt)

    def depth(self) -> Depth:
        return self.inner.depth()


class Bench:
    """A memory world, one slot in it, and the watched queue in between."""

    def __init__(self) -> None:
        self.memory = memory_world(limits=Limits(chunk_size=CHUNK, small_max_items=1))
        self.stopping = threading.Event()
        self.line = Line(self.memory.queues[Lane.BULK], self.stopping)
        self.world: World = _plain(self.memory, self.line)
        self.protection = Protection(None, MemoryTelemetry())

    def fill(self, count: int) -> list[str]:
        ids = [f"r{n:03}" for n in range(count)]
        self.memory.records.load(TENANT, {id_: {"price": 10} for id_ in ids})
        return ids

    def submit(self, ids: Sequence[str], subject: str = "products") -> SubmitResult:
        body = parse(json.dumps(job(list(ids), subject)))
        return submit(self.world, TENANT, accept(body, self.world.operations, max_ids=1000))

    def job(self, ids: Sequence[str], subject: str = "products") -> Job:
        outcome = self.submit(ids, subject)
        assert isinstance(outcome, Created)
        return outcome.job

    def serve(self) -> None:
        """Until the queue is empty or the slot is told to stop."""
        Slot(self.world, "slot", self.stopping, self.protection, 1).run()

    def now(self, of: Job) -> Job:
        found = read_job(self.memory, of.id)
        assert found is not None
        return found

    def prices(self, ids: Sequence[str]) -> list[object]:
        found = self.memory.records.read(TENANT, ids)
        return [found[id_].fields["price"] for id_ in ids]

    def actions(self) -> list[str]:
        return self.memory.telemetry.actions()


def _plain(memory: MemoryWorld, line: Line) -> World:
    made: World = memory
    return replace(made, queues={**memory.queues, Lane.BULK: line})


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(slots, "AFTER_ERROR", 0)
    return Bench()


def test_c01_a_slot_takes_one_message_at_a_time_and_starts_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits behind a long job stays in the queue, for other workers and unreceived."""
    ids = bench.fill(30)
    jobs = [bench.job(ids, f"s{n}") for n in range(2)]  # as many as a tenant has slots
    in_flight: list[int] = []

    def looking(world: World, delivery: Delivery, worker: Worker) -> Decision:
        stored = bench.line.inner.snapshot()
        in_flight.append(sum(message.receive_count for message in stored))
        return on_message(world, delivery, worker)

    monkeypatch.setattr(slots, "on_message", looking)
    bench.serve()
    assert in_flight == [1, 1]
    assert set(bench.line.limits) == {1}
    assert [bench.now(each).state for each in jobs] == [State.SUCCEEDED] * 2
    assert bench.line.inner.snapshot() == ()


def test_a_stopping_slot_receives_nothing(bench: Bench) -> None:
    waiting = bench.job(bench.fill(30))
    bench.stopping.set()
    bench.serve()
    assert bench.line.limits == []
    assert bench.now(waiting).state is State.QUEUED


def test_a_message_that_comes_while_stopping_is_handed_back_at_once(bench: Bench) -> None:
    waiting = bench.job(bench.fill(30))
    bench.line.on_receive = bench.stopping.set
    bench.serve()
    assert bench.line.hidden == [0]
    assert len(bench.line.inner.receive(1, 0)) == 1
    after = bench.now(waiting)
    assert (after.state, after.attempt, after.worker) == (State.QUEUED, 0, None)
    assert "attempt_begun" not in bench.actions()  # not even for a moment


@pytest.mark.parametrize("boundary", [1, 2, 3])
def test_c21_a_stop_ends_at_the_chunk_boundary_and_gives_the_attempt_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, boundary: int
) -> None:
    """C11 with it: the subject stays taken, so nobody runs beside the resumed job."""
    ids = bench.fill(4 * CHUNK)
    running = bench.job(ids)
    chunks: list[Sequence[Write]] = []
    transact = MemoryStore.transact

    def stop_in_chunk(self: MemoryStore, action: str, writes: Sequence[Write]) -> None:
        if action == "commit_chunk":
            chunks.append(writes)
            if len(chunks) == boundary:
                bench.stopping.set()
        transact(self, action, writes)

    with monkeypatch.context() as watched:
        watched.setattr(MemoryStore, "transact", stop_in_chunk)
        bench.serve()
    stopped = bench.now(running)
    done = boundary * CHUNK
    assert (stopped.state, stopped.position, stopped.attempt) == (State.QUEUED, done, 0)
    assert bench.prices(ids) == [11] * done + [10] * (len(ids) - done)
    assert bench.line.hidden == [0]
    assert "attempt_given_back" in bench.actions()
    assert isinstance(bench.submit(ids), Busy)
    lease = read_lease(bench.memory, stopped)
    assert lease is not None
    assert (lease.job_id, lease.expires_at) == (running.id, None)
    bench.stopping.clear()
    bench.serve()
    assert bench.now(running).state is State.SUCCEEDED
    assert bench.prices(ids) == [11] * len(ids)
    assert isinstance(bench.submit(ids), Created)


def test_a_bug_costs_a_message_its_turn_and_not_the_slot(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [bench.job(bench.fill(20), f"s{n}") for n in range(2)]
    seen: list[str] = []

    def buggy(world: World, delivery: Delivery, worker: Worker) -> Decision:
        seen.append(delivery.message_id)
        if len(seen) == 1:
            raise RuntimeError("a bug")
        return on_message(world, delivery, worker)

    monkeypatch.setattr(slots, "on_message", buggy)
    bench.serve()
    assert "slot_crashed" in bench.actions()
    assert [bench.now(each).state for each in jobs] == [State.QUEUED, State.SUCCEEDED]
    [left] = bench.line.inner.snapshot()
    assert left.message_id == seen[0]


@pytest.mark.parametrize("error", [Transient("down"), RuntimeError("no such queue")])
def test_a_queue_that_fails_is_asked_again(bench: Bench, error: Exception) -> None:
    waiting = bench.job(bench.fill(20))
    receive, tries = bench.line.receive, [error, error]

    def failing(limit: int, wait_seconds: int) -> Sequence[Delivery]:
        if tries:
            raise tries.pop()
        return receive(limit, wait_seconds)

    bench.line.receive = failing  # type: ignore[method-assign]
    bench.serve()
    assert tries == []
    assert bench.now(waiting).state is State.SUCCEEDED
    expected = "receive_failed" if isinstance(error, Transient) else "slot_crashed"
    assert bench.actions().count(expected) == 2


@pytest.mark.parametrize("error", [Transient("down"), ReceiptExpired(), RuntimeError("a bug")])
def test_a_message_that_cannot_be_settled_costs_nothing(bench: Bench, error: Exception) -> None:
    """It comes back, finds its job finished, and goes."""
    jobs = [bench.job(bench.fill(20), f"s{n}") for n in range(2)]

    def fail_once() -> None:
        bench.line.on_settle = lambda: None
        raise error

    bench.line.on_settle = fail_once
    bench.serve()
    assert [bench.now(each).state for each in jobs] == [State.SUCCEEDED] * 2
    assert len(bench.line.inner.snapshot()) == 1
    bench.memory.runtime.sleep(bench.memory.timing.bulk.visibility * 1000)
    bench.stopping.clear()
    bench.serve()
    assert bench.line.inner.snapshot() == ()
    assert bench.prices(["r000"]) == [12]


@pytest.mark.parametrize("crash", [False, True])
def test_the_task_is_protected_exactly_while_a_job_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, crash: bool
) -> None:
    bench.job(bench.fill(20))
    running: list[int] = []

    def looking(*_: object) -> Decision:
        running.append(bench.protection._running)
        if crash:
            raise RuntimeError("a bug")
        return DeleteMessage("done")

    monkeypatch.setattr(slots, "on_message", looking)
    bench.serve()
    assert running == [1]
    assert bench.protection._running == 0
