"""Small worlds with a few processes in them, and what must be true when they have come to rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import submit
from handlers.jobs.selection.request import Accepted
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.ports import World
from handlers.jobs.words.writes import Key, Put, Table
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.telemetry import MemoryTelemetry
from tests.simulation.items import short
from tests.simulation.operation import BUMP
from tests.simulation.timing import TIMING
from tests.simulation.verdict import unrest
from tests.simulation.watch import Watch

from .ports import HashedStore, StepPayloads, StepQueue, StepRecords, StepStore
from .schedule import Call, Process, Schedule, StepRuntime, Thread

TENANT: Final = "t"
RECORDS: Final[dict[str, int | str]] = {"r0": 0, "r1": "skip"}
"""Two chunks: one changes its record, one changes nothing but the job."""
CHANGED: Final = {"r0"}
SUBJECT: Final = "s"
ROUNDS: Final = 16
ROUND: Final = 30_000
"""ms; after the play, recovery runs and messages are received this often, without a fault."""
EXPIRY: Final = 9000
"""ms after which the lease of a worker that stands still has expired, in either lane."""
GRACE: Final = 30_000
"""ms after which another job may take its subject over."""
MOST_STEPS: Final = 400


@dataclass(frozen=True)
class Play:
    """Who is there. Every call of them can come before or after every call of the others."""

    name: str
    people: Callable[[Stage], None]
    ends: frozenset[str] = frozenset({"SUCCEEDED"})
    """The states in which jobs may end."""
    beats: int = 0
    """Heartbeats of each worker; they come whenever they are chosen."""


class Telemetry(MemoryTelemetry):
    """Nothing but a rule that crashed."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def log(self, action: str, **fields: object) -> None:
        if action in {"attempt_crashed", "recovery_item_crashed", "beat_crashed"}:
            self._schedule.crashes.append(f"{action}: {fields['error']!r}")


class Stage:
    """The world of one run of a play."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.schedule = schedule = Schedule()
        self.processes: dict[str, Process] = {"network": schedule.network}
        self.store = HashedStore()
        clock = StepRuntime(schedule, Process("queue"))
        self.queues = {
            lane: MemoryLaneQueue(clock, name=lane.value, visibility=TIMING.lane(lane).visibility)
            for lane in Lane
        }
        self.payloads = MemoryPayloadStore()
        self.records = MemoryRecordStore(self.store)
        self.limits = Limits(chunk_size=1, small_max_items=10)
        self.telemetry = Telemetry(schedule)
        self.watch = Watch(schedule, self.store, self.queues, TIMING, self.limits, 0)  # type: ignore[arg-type]  # it asks only for the time and the thread
        for id_, n in RECORDS.items():
            key = Key(TENANT, id_, Table.RECORDS)
            self.store.transact("load", [Put(key, {"n": n, "version": 1})])
        self.store.watch = self.watch
        play.people(self)

    # --- people -------------------------------------------------------------------------------

    def job(self, lane: Lane) -> None:
        """A queued job over the records, with its message, made before the play begins."""
        world = self.world_of(self.process("before"))
        if lane is Lane.BULK:
            world = World(**{**vars(world), "limits": Limits(chunk_size=1, small_max_items=1)})
        self.settle_one("before", partial(submit, world, TENANT, self._request()))

    def worker(self, name: str, lane: Lane, *, function: bool = False) -> None:
        """Receives a message of the lane, at any time, and does what it asks for. function: it ends
        with its time-out."""
        process = self.process(name, lane)
        process.beats = self.play.beats

        def work() -> None:
            queue = self.queues[lane]
            self.schedule.stop_at(Call(f"receive {lane}", ready=lambda: bool(queue._stored)))
            for message in queue._stored.values():
                message.visible_at = min(message.visible_at, self.schedule.now)
            [delivery] = queue.receive(1, 0)
            self.schedule.answered("receive", delivery)
            self.watch.received[delivery.receipt] = self.schedule.now
            deadline = self.schedule.now + TIMING.function_timeout * 1000 if function else None
            process.deadline = deadline
            world = self.world_of(process)
            decision = on_message(world, delivery, Worker(name, deadline=deadline))
            try:
                apply_decision(world.queues[lane], delivery, decision)
            except FairlaneError:
                return

        self._stops_first(self.schedule.start(process, "", work))

    def recovery(self, name: str) -> None:
        process = self.process(name)
        run = Recovery(self.world_of(process)).run
        self.client(name, lambda _: run())

    def client(self, name: str, act: Callable[[World], object]) -> None:
        process = self.process(name)

        def ask() -> None:
            try:
                act(self.world_of(process))
            except FairlaneError:
                return

        self.schedule.start(process, "", ask)

    def creates(self, name: str) -> None:
        self.client(name, lambda world: submit(world, TENANT, self._request()))

    def cancels(self, name: str) -> None:
        def cancel(world: World) -> None:
            for job_id in list(self.watch.jobs):
                control.cancel(world, TENANT, job_id)

        self.client(name, cancel)

    def redelivers(self, name: str, lane: Lane) -> None:
        """The message of the job once more, as a queue delivers it now and then."""

        def again() -> None:
            self.schedule.stop_at(Call("deliver again"))
            from handlers.jobs.storage.control_table import job_of  # noqa: PLC0415

            for item in self.watch.jobs.values():
                self.queues[lane].send(
                    [message_for(job_of(item).model_copy(update={"lane": lane}))]
                )

        self.schedule.start(self.process(name), "", again)

    def clock(self, *jumps: int) -> None:
        """Time that passes, at any moment. A function whose time is over is gone."""

        def tick() -> None:
            for jump in jumps:
                self.schedule.stop_at(Call(f"{jump} ms pass"))
                self.schedule.now += jump
                for process in self.processes.values():
                    if process.deadline is not None and process.deadline < self.schedule.now:
                        self.schedule.kill(process)
                self.schedule.current = self.schedule.threads["clock"]

        self._stops_first(self.schedule.start(self.process("clock"), "", tick))

    @staticmethod
    def _stops_first(thread: Thread) -> None:
        """It looks at nothing before its first stop, so it may begin at once."""
        thread.call = Call("start", at_once=lambda: True)

    # --- one run ------------------------------------------------------------------------------

    def process(self, name: str, lane: Lane | None = None) -> Process:
        # The watch knows a function by its name.
        called = f"fn {name}" if lane is Lane.SMALL else name
        return self.processes.setdefault(name, Process(called, lane))

    def world_of(self, process: Process) -> World:
        schedule = self.schedule
        return World(
            store=StepStore(schedule, process, self.store, self.watch),
            records=StepRecords(schedule, self.records),
            queues={
                lane: StepQueue(schedule, queue, lane, self.watch)
                for lane, queue in self.queues.items()
            },
            payloads=StepPayloads(schedule, self.payloads),
            runtime=StepRuntime(schedule, process),
            telemetry=self.telemetry,
            operations={"bump": BUMP},
            timing=TIMING,
            limits=self.limits,
            due_shards=1,
        )

    def state(self) -> int:
        """A hash of all that the next steps depend on."""
        queues = tuple(
            (m.body, m.receive_count, m.receipt)
            for queue in self.queues.values()
            for m in queue._stored.values()
        )
        known = tuple((p.history, p.dead, p.beats) for p in self.processes.values())
        return hash((self.store.hash, queues, known, self.schedule.now))

    def wrong(self) -> list[str]:
        return [*map(str, self.watch.violations), *self.schedule.crashes]

    def close(self) -> None:
        self.schedule.close(list(self.processes.values()))

    # --- the end ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Recovery and workers go on without faults until the world is at rest."""
        self.close()
        for number in range(ROUNDS):
            if not any(queue._stored for queue in self.queues.values()) and not unrest(self.store):
                return
            self.schedule.now += ROUND
            world = self.world_of(self.process(f"settle{number}"))
            self.settle_one(f"settle{number}", Recovery(world).run)
            for lane in Lane:
                self._receive(f"{lane}{number}", lane)

    def _receive(self, name: str, lane: Lane) -> None:
        world = self.world_of(self.process(name, lane))

        def work() -> None:
            for delivery in self.queues[lane].receive(10, 0):
                self.watch.received[delivery.receipt] = self.schedule.now
                decision = on_message(world, delivery, Worker(name))
                apply_decision(world.queues[lane], delivery, decision)

        self.settle_one(name, work)

    def settle_one(self, name: str, run: Callable[[], object]) -> None:
        process = self.process(name)

        def body() -> None:
            run()

        self.schedule.start(process, "", body)
        for _ in range(MOST_STEPS):
            ready = [t for t in process.threads if t.call is not None and t.call.ready()]
            if not ready:
                break
            self.schedule.step_without_fault(ready[0])
        self.schedule.kill(process)
        for thread in process.threads:
            self.schedule.threads.pop(thread.label)
        del self.processes[name]

    def judge(self) -> Iterator[str]:
        """What is wrong with a world that should be at rest."""
        yield from unrest(self.store)
        if any(queue._stored for queue in self.queues.values()):
            yield "messages keep coming back"
        for job in self.watch.jobs.values():
            name = f"job {short(str(job['id']))}"
            state = str(job["state"])
            if state not in self.play.ends:
                yield f"{name} ended {state}: {job.get('end_reason')} {job.get('message')}"
            changed = {r for (_, r), jobs in self.watch.changes.items() if job["id"] in jobs}
            if state == "SUCCEEDED" and changed != CHANGED:
                yield f"{name} succeeded and changed only {sorted(changed)}"
        for key, item in self.store.all_items().items():
            if key.sk.startswith("SLOTS") and item.get("in_flight"):
                yield f"{key.sk} still counts {item}"

    def _request(self) -> Accepted:
        return Accepted(
            operation="bump",
            subject=SUBJECT,
            params="{}",
            ids=tuple(RECORDS),
            duplicates=0,
            tolerated_failure_percent=100,
            labels={},
        )


# --- the plays --------------------------------------------------------------------------------

PLAYS: Final[dict[str, Play]] = {}


def play(
    *ends: str, beats: int = 0
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    def add(people: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = people.__name__.replace("_", " ")
        PLAYS[name] = Play(name, people, frozenset({"SUCCEEDED", *ends}), beats)
        return people

    return add


@play(beats=1)
def two_workers(stage: Stage) -> None:
    """A message is delivered twice; time passes, so that the second worker may resume."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.worker("two", Lane.BULK)
    stage.clock(EXPIRY)


@play("FAILED")
def a_takeover(stage: Stage) -> None:
    """Another job takes the subject of a worker that stands still, or is slow."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.creates("client")
    stage.worker("two", Lane.BULK)
    stage.clock(EXPIRY, GRACE)


@play()
def a_recovery_run(stage: Stage) -> None:
    """Recovery sends what seems lost, while the worker comes back."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.recovery("recovery")
    stage.worker("two", Lane.BULK)
    stage.clock(GRACE)


@play()
def two_recovery_runs(stage: Stage) -> None:
    """Two runs meet the same job, whose worker is gone."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.recovery("recovery")
    stage.recovery("other recovery")
    stage.clock(GRACE)


@play()
def a_promotion(stage: Stage) -> None:
    """A function promotes its job, and its own message comes back."""
    stage.job(Lane.SMALL)
    stage.worker("function", Lane.SMALL, function=True)
    stage.worker("bulk", Lane.BULK)
    stage.worker("other function", Lane.SMALL, function=True)
    stage.clock(1600, EXPIRY)


@play("CANCELLED")
def a_cancel(stage: Stage) -> None:
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.cancels("client")
    stage.worker("two", Lane.BULK)
    stage.clock(EXPIRY)


@play("FAILED")
def two_creates(stage: Stage) -> None:
    """Two requests for one subject, and workers for what they make."""
    stage.creates("client")
    stage.creates("other client")
    stage.worker("one", Lane.SMALL)
    stage.worker("two", Lane.SMALL)
