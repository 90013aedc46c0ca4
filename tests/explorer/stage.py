"""A small world with a few processes in it, and what must be true when it has come to rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import Accepted
from handlers.jobs.storage.transaction import Indeterminate
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import World
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Key, Put, Table
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.telemetry import MemoryTelemetry
from tests.simulation.items import int_of, short
from tests.simulation.operation import BUMP
from tests.simulation.timing import TIMING
from tests.simulation.verdict import unrest
from tests.simulation.watch import Watch

from .ports import HashedStore, StepPayloads, StepQueue, StepRecords, StepStore
from .schedule import Call, Process, Schedule, StepRuntime, maker_of

TENANT: Final = "t"
RECORDS: Final[dict[str, int | str]] = {"r0": 0, "r1": "skip"}
"""Two chunks: one changes its record, one changes nothing but the job."""
CHANGED: Final = {"r0"}
SUBJECT: Final = "s"
ROUNDS: Final = 16
ROUND: Final = 30_000
"""ms; after the play, recovery runs and messages are received this often, without a fault."""
MOST_STEPS: Final = 400
"""Steps of one run; more is a play that never ends."""


@dataclass(frozen=True)
class Play:
    """Who is there. Every call of them can come before or after every call of the others."""

    name: str
    people: Callable[[Stage], None]
    ends: frozenset[str] = frozenset({"SUCCEEDED"})
    """The states in which jobs may end."""
    beats: int = 0
    """Heartbeats of each worker; they come whenever they are chosen."""
    ids: tuple[str, ...] = tuple(RECORDS)
    """The ids of each job, one chunk each."""
    slots: int = 50
    """Jobs of the small lane that may have a message at once."""


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
        self.limits = Limits(chunk_size=1, small_max_items=10, tenant_slots_small=play.slots)
        self.telemetry = Telemetry(schedule)
        self.watch = Watch(schedule, self.store, self.queues, TIMING, self.limits, 0)
        for id_, n in RECORDS.items():
            key = Key(TENANT, id_, Table.RECORDS)
            self.store.transact("load", [Put(key, {"n": n, "version": 1})])
        self.answers: dict[str, object] = {}
        """What each client that created a job was told: the result or the error."""
        self.keyed: set[str] = set()
        """The clients whose requests are tries of one."""
        self.store.watch = self.watch
        play.people(self)

    # --- people -------------------------------------------------------------------------------

    def job(self, lane: Lane) -> None:
        """A queued job over the records, with its message, made before the play begins."""
        world = self.world_of(self.process("before"))
        if lane is Lane.BULK:
            world = World(**{**vars(world), "limits": Limits(chunk_size=1, small_max_items=1)})
        self.settle_one("before", partial(submit, world, TENANT, self._request()))

    def unsent(self) -> None:
        """A queued job of the small lane whose client died before its message was sent."""
        self.creates("before")
        self._without_faults(self.processes["before"], over=lambda: bool(self.watch.jobs))

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
            deadline = self.schedule.now + ms(TIMING.function_timeout) if function else None
            process.deadline = deadline
            world = self.world_of(process)
            worker = Worker(name, stopping=lambda: process.stopping, deadline=deadline)
            decision = on_message(world, delivery, worker)
            try:
                apply_decision(world.queues[lane], delivery, decision)
            except FairlaneError:
                return

        self.schedule.start(process, "", work, at_once=True)

    def dies_at_work(self, name: str, lane: Lane) -> None:
        """A worker that has begun its attempt before the play begins, and is dead."""
        self.worker(name, lane)
        at_work = lambda: any(job["state"] == "RUNNING" for job in self.watch.jobs.values())  # noqa: E731
        self._without_faults(self.processes[name], over=at_work)

    def stops(self, name: str) -> None:
        """The process is asked to end, at any time."""
        process = self.processes[name]

        def ask() -> None:
            self.schedule.stop_at(Call("SIGTERM"))
            process.stopping = True

        self.schedule.start(self.process("operator"), "", ask, at_once=True)

    def writes(self, name: str, id_: str) -> None:
        """Another program changes a record, at any time."""
        key = Key(TENANT, id_, Table.RECORDS)

        def write() -> None:
            self.schedule.stop_at(Call(f"write {id_}"))
            item = self.store.peek(key)
            version = int_of(item, "version") + 1
            self.store.transact("outside", [Put(key, {**item, "o": 1, "version": version})])

        self.schedule.start(self.process(name), "", write, at_once=True)

    def recovery(self, name: str, *, after: int = 0) -> None:
        """A run of recovery. after: ms that pass just before it."""

        def run(world: World) -> None:
            if after:
                self.schedule.stop_at(Call(f"{after} ms pass"))
                self.schedule.now += after
            Recovery(world).run()

        self.client(name, run)

    def client(self, name: str, act: Callable[[World], object]) -> None:
        process = self.process(name)

        def ask() -> None:
            try:
                act(self.world_of(process))
            except FairlaneError:
                return

        self.schedule.start(process, "", ask)

    def creates(self, name: str, *, subject: str = SUBJECT, key: str | None = None) -> None:
        """A client creates a job. key: the same for several tries of one request."""
        if key is not None:
            self.keyed.add(name)

        def create(world: World) -> None:
            try:
                answer: object = submit(world, TENANT, self._request(subject), idempotency=key)
            except FairlaneError as error:
                answer = error
            self.answers[name] = answer

        self.client(name, create)

    def asks(self, name: str, verb: Callable[[World, str, str], object]) -> None:
        """A client asks for this (``control.cancel``, ``control.pause``) of every job."""

        def ask(world: World) -> None:
            for job_id in list(self.watch.jobs):
                verb(world, TENANT, job_id)

        self.client(name, ask)

    def clock(self, *jumps: int) -> None:
        """Time that passes, at any moment. A function whose time is over is gone."""

        def tick() -> None:
            for jump in jumps:
                self.schedule.stop_at(Call(f"{jump} ms pass"))
                self.schedule.now += jump
                for process in self.processes.values():
                    if process.deadline is not None and process.deadline < self.schedule.now:
                        self.schedule.kill(process)

        self.schedule.start(self.process("clock"), "", tick, at_once=True)

    def passes(self, time: int) -> None:
        """ms that are over when the play begins."""
        self.schedule.now += time

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
        known = tuple((p.history, p.dead, p.beats, p.stopping) for p in self.processes.values())
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
        self._without_faults(process)

    def _without_faults(self, process: Process, over: Callable[[], bool] = lambda: False) -> None:
        """The process alone goes on until it is over or has nothing to do, and is gone."""
        for _ in range(MOST_STEPS):
            mine = (t for t in self.schedule.threads.values() if t.process is process)
            ready = next((t for t in mine if t.waiting), None)
            if ready is None or over():
                break
            self.schedule.step_without_fault(ready)
        self.schedule.kill(process)
        for thread in process.threads:
            self.schedule.threads.pop(thread.label)
        self.processes = {n: p for n, p in self.processes.items() if p is not process}

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
            if job["failed"]:
                yield f"{name} lists {job['failed']} records as failed"
        yield from self._answered()
        for key, item in self.store.all_items().items():
            if key.sk.startswith("SLOTS") and item.get("in_flight"):
                yield f"{key.sk} still counts {item}"

    def _answered(self) -> Iterator[str]:
        """Rule 8: an accepted job exists, a refused request left none, and the tries of one request
        make one job."""
        for name, answer in self.answers.items():
            tries = self.keyed if name in self.keyed else {name}
            made = {id_ for id_ in self.watch.jobs if maker_of(id_) in tries}
            if len(made) > 1:
                yield f"the tries of {name} made {len(made)} jobs"
            if isinstance(answer, Created):
                if answer.job.id not in made:
                    yield f"{name} was told of the job {short(answer.job.id)}, which there is not"
            elif made and tries == {name} and not isinstance(answer, Indeterminate):
                yield f"{name} was answered {answer!r} and has a job"

    def _request(self, subject: str = SUBJECT) -> Accepted:
        return Accepted(
            operation="bump",
            subject=subject,
            params="{}",
            ids=self.play.ids,
            duplicates=0,
            tolerated_failure_percent=100,
            labels={},
        )
