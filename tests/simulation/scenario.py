"""One seed: a small world, the people and programs in it, and what befalls them."""

from __future__ import annotations

import gc
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from handlers.jobs.lifecycle import submit as submitting
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, JobEvent
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import LaneQueue, World
from handlers.jobs.words.writes import Key, Put, Table
from handlers.testing import lane_queue
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.record_query import MemoryRecordQuery
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.uploads import MemoryUploadStore

from . import crowd, outside, verdict, wires
from . import faults as faults_
from .extras import NONSENSE, Extras
from .function import Functions
from .hub import Hub, Process, SimRuntime, TrueClock
from .items import OVER, number_of
from .operation import BUMP
from .people import People, Request
from .selecting import KINDS, LOOKED_AT, History, Selecting
from .timing import SKEW, TIMING, giving_up_soon
from .watch import Violation, Watch
from .watched_store import Present, WatchedStore
from .workers import DeadLetters, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .faults import Faults
from .hub import Step

SEEDS: Final = 2000
"""Runs that all the rules are held against."""
TOLD: Final = 0.5
"""How many seeds have something outside that has to hear of changes."""
UNHEARD_FOR: Final = 60_000
"""ms for which faults go on longer where messages are received and nobody hears of it."""
LOOKS: Final = (500, 6000)
"""ms between two looks at a job that may wait."""
REST_WITHIN: Final = 600_000
"""ms after the last fault in which the world must have come to rest."""


@dataclass
class Run:
    """What a seed led to."""

    seed: int
    violations: list[Violation]
    trace: list[Step]
    seen: dict[str, int]
    """How often each thing happened: transactions and log actions by name."""
    elapsed: int
    """Virtual ms."""


@dataclass
class Scenario:
    """The world of one seed."""

    seed: int
    max_retries: int = 60
    """How often a job lets go for a dependency before that costs it attempts."""
    random: Random = field(init=False)
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = Hub(self.seed)
        self.random = self.hub.random
        self.faults: Faults = faults_.draw(self.random, max_skew=int(SKEW * 500))
        self.extras = Extras(self.seed)
        self.limits = Limits(
            small_max_items=self.random.choice((6, 12, 12)),
            chunk_size=self.random.randint(2, 7),
            tenant_slots_small=self.random.choice((1, 1, 2)),
            tenant_slots_bulk=self.random.choice((1, 1, 2)),
            max_active_jobs_per_tenant=self.random.choice((1, 2, 1000, 1000)),
            max_retries=self.max_retries,
            max_effect_tries=self.extras.effect_tries,
            max_dispatch_tries=self.extras.effect_tries,
        )
        # Of its own dice, so that the other choices of a seed stay as they were.
        slice_ = Random(f"slice {self.seed}").choice((0, 0, 0.5, 2))  # noqa: S311  a plan, no secret
        self.timing = TIMING.model_copy(
            update={"lost_after": self.random.choice((6, 20, 60)), "slice": slice_}
        )
        if self.extras.crowded:
            crowd.settle(self)
        if self.extras.unheard:
            self.timing = giving_up_soon(self.timing)
        self.shards = self.random.choice((1, 1, 2))
        self.store = WatchedStore(self.extras.lag)
        self.records = MemoryRecordStore(self.store)
        clock = TrueClock(self.hub)
        self.dead = {lane: DeadLetters(clock, name=f"{lane}-dlq", visibility=30) for lane in Lane}
        self.queues = {
            lane: MemoryLaneQueue(
                clock,
                name=lane.value,
                visibility=self.timing.lane(lane).visibility,
                max_receive_count=self.timing.lane(lane).max_receive_count,
                dead_letters=self.dead[lane],
            )
            for lane in Lane
        }
        self.payloads = MemoryPayloadStore()
        self.query = MemoryRecordQuery(self.store, look_at=LOOKED_AT)
        dice = Random(f"selecting {self.seed}")  # noqa: S311  repeatable
        self.selecting = Selecting(dice, MemoryUploadStore())
        # Chance of its own, so that seeds are what they were without it.
        told = Random(f"outside {self.seed}").random() < TOLD  # noqa: S311  repeatable
        self.outside = (
            outside.Outside(late=not (self.extras.removals and self.extras.wide)) if told else None
        )
        self.watch = Watch(
            self.hub, self.store, self.queues, self.timing, self.limits, int(SKEW * 1000)
        )
        self.watch.stale_deletes_work = self.random.random() < 0.3
        self.requests: list[Request] = []
        self.heard: list[JobEvent] = []
        """What the listeners were told, in that order."""
        self.has_bus = self.random.random() < 0.5
        self.asked: dict[str, set[str]] = defaultdict(set)
        """What was asked of a job: cancel, pause, …"""
        self.payload_lost: set[str] = set()
        self.subjects: dict[tuple[str, str], list[str]] = {}
        self.meddling = self.random.choice((0.0, 0.05, 0.4))
        """How likely somebody acts on a job as soon as its state changes."""
        self.behind: dict[Lane, int] = {}
        """Until when (ms) a lane's messages stay where they are."""
        self.looks = Random(f"looks {self.seed}")  # noqa: S311  repeatable
        self.names = 0
        self.calm_at = self.hub.now + self.random.randint(20_000, 70_000)
        if self.extras.unheard:
            self.calm_at += UNHEARD_FOR
        if self.max_retries == 0:
            self.faults.down["read records"] = self.calm_at
        self.people = People(self)
        self.workers = Workers(self)
        self.functions = Functions(self)
        self._people_the_world()

    # --- the world ----------------------------------------------------------------------------

    def _people_the_world(self) -> None:
        subjects = crowd.subjects(self) if self.extras.crowded else self._subjects()
        for number, (tenant, size) in enumerate(subjects):
            ids = [f"s{number}r{i}" for i in range(size)]
            self.subjects[tenant, f"s{number}"] = ids
            for index, id_ in enumerate(ids):
                self._new_record(tenant, ids, index, id_)
        if self.outside is not None:
            for key, item in self.store.all_items().items():
                self.outside.set(key.pk, key.sk, *outside.about(item))
        if self.extras.by_query:
            self.watch.history = History()
            for key, item in self.store.all_items().items():
                self.watch.history.wrote(key.pk, key.sk, 0, item, None)
        self.watch.query_of = lambda job: self.requests[number_of(job)].query
        self.store.watch = self.watch
        self.watch.moved = self.people.meddle
        self.watch.taking = self.workers.rouse

    def _subjects(self) -> Iterator[tuple[str, int]]:
        """The tenants of the subjects, each with its number of records."""
        for number in range(self.random.randint(2, 4)):
            yield f"t{self.random.randrange(2 + number % 2)}", self.random.randint(4, 30)

    def _new_record(self, tenant: str, ids: list[str], index: int, id_: str) -> None:
        drawn = self.random.random()
        item: dict[str, object] = {"n": 0, "version": 1}
        if drawn < 0.03:
            return
        if drawn < 0.06:
            ids[index] = id_ = id_ + "!"
        elif drawn < 0.12:
            item["n"] = self.random.choice(("skip", "raise", "text"))
            if self.extras.random.random() < self.extras.nonsense:
                item["n"] = self.extras.random.choice(NONSENSE)
        elif self._removable() and self.extras.random.random() < self.extras.removals:
            item["n"] = "remove"
        elif drawn < 0.2:
            del item["version"]
        if self.extras.by_query:
            item["kind"] = self.selecting.random.choice(KINDS)
        self.store.transact("load", [Put(Key(tenant, id_, Table.RECORDS), item)])  # type: ignore[arg-type]

    def _removable(self) -> bool:
        """A removed record's document has a protocol of its own, in a wide world."""
        return self.outside is None or self.extras.wide

    def world_of(self, process: Process) -> World:
        line = wires.Line(self.hub, process, self.faults)
        told = self.outside
        sink = None if told is None else outside.SimSink(line, told, self.watch)
        return World(
            store=wires.SimStore(line, self.store, self.watch),
            records=wires.SimRecords(line, self.records),
            queues={
                lane: wires.SimQueue(line, queue, lane, self.watch)
                for lane, queue in self.queues.items()
            },
            payloads=wires.SimPayloads(line, self.payloads),
            query=wires.SimQuery(line, self.query, self.store),
            uploads=wires.SimUploads(line, self.selecting.uploads),
            runtime=SimRuntime(self.hub, process),
            telemetry=wires.SimTelemetry(
                self.hub, self.watch.seen, self.functions.unsettled[process]
            ),
            operations={} if process.old else {"bump": BUMP},
            timing=self.timing,
            limits=self.limits,
            due_shards=self.shards,
            sinks={} if sink is None else {outside.NAME: sink},
            listeners={
                name: outside.SimListener(line, self.heard)
                for name in ((EVENT_BUS,) if self.has_bus else ())
                + ((ADDRESS,) if process.name.startswith("recovery") else ())
            },
            address_problem=lambda _: None,
        )

    def letters_of(self, process: Process, lane: Lane) -> LaneQueue:
        """The lane's dead letters, as one process sees them."""
        line = wires.Line(self.hub, process, self.faults)
        return wires.SimDeadLetters(line, self.dead[lane], lane, self.watch)

    def present(self) -> World:
        """The world as nobody in it sees it: without faults, and without time on the way."""
        return World(
            store=Present(self.store),
            records=self.records,
            queues=self.queues,
            payloads=self.payloads,
            uploads=self.selecting.uploads,
            runtime=TrueClock(self.hub),
            telemetry=wires.SimTelemetry(self.hub, {}),
            operations={"bump": BUMP},
            timing=self.timing,
            limits=self.limits,
            due_shards=self.shards,
        )

    def process(self, kind: str) -> Process:
        self.names += 1
        process = Process(f"{kind}{self.names}", self.faults.skew())
        if kind in {"fn", "worker"} and not self.faults.off:
            process.old = self.extras.random.random() < self.extras.old
        return process

    # --- one run ------------------------------------------------------------------------------

    def run(self) -> Run:
        self.timing.check()
        end = self.calm_at + REST_WITHIN
        if self.extras.crowded:
            crowd.plan(self)
        else:
            self._plan()
        self.workers.hire()
        self.hub.after(self.calm_at - self.hub.now, self._calm)
        self.hub.after(0, self.workers.deliver)
        self.hub.after(self.looks.randint(*LOOKS), self._look)
        self.hub.after(self.random.randint(0, 9000), self.workers.recover)
        with (
            patch.object(submitting, "INLINE_ID_BYTES", self.random.choice((40, 100, 100_000))),
            patch.object(lane_queue, "VISIBILITY_CAP", self.extras.hidden_at_most),
            self.functions.deployed(),
        ):
            self.hub.run(lambda: self._over(end))
        if not self._broken():
            self._judge(end)
        self.watch.violations += [
            Violation("no rule crashes", crash, self.hub.now) for crash in self.hub.crashes
        ]
        ran = Run(
            self.seed,
            list(self.watch.violations),
            list(self.hub.trace),
            {**self.watch.seen, **{f"{a}->{b}": n for (a, b), n in self.watch.edges.items()}},
            self.hub.now - self.calm_at,
        )
        self.hub.close()
        return ran

    def _plan(self) -> None:
        """What people do, and what befalls them, until the faults end."""
        for _ in range(self.random.randint(4, 12)):
            self._sometime(self.people.create)
        for _ in range(self.random.randint(0, 25)):
            self._sometime(self.people.control)
        for _ in range(self.random.choice((0, 0, 1, 6))):
            self._sometime(self.people.choose_limits)
        for _ in range(self.random.choice((0, 0, 3, 20))):
            self._sometime(self.people.write_outside)
        if self.random.random() < 0.1:
            self._sometime(self.people.lose_payload)
        for _ in range(self.random.choice((0, 0, 1, 3))):
            self._sometime(self.people.go_down)
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self._sometime(self.people.fall_behind)
        for _ in range(self.random.choice((0, 1, 3, 10))):
            self._sometime(self.workers.stop_one)
        self.functions.plan()
        self.people.plan()
        self.workers.no_recovery_until = self.hub.now + self.random.choice((0, 0, 30_000, 100_000))

    def _broken(self) -> bool:
        return bool(self.watch.violations or self.hub.crashes)

    def _over(self, end: int) -> bool:
        return self._broken() or self.hub.now > end or (self.faults.off and self._at_rest())

    def _at_rest(self) -> bool:
        if self.workers.busy() or any(queue._stored for queue in self.queues.values()):
            return False
        return not verdict.unrest(self.store)

    def _judge(self, end: int) -> None:
        if self.hub.now > end:
            for what in verdict.unrest(self.store) or ["messages keep coming back"]:
                self.watch.wrong("3", f"no rest {REST_WITHIN} ms after the last fault: {what}")
            return
        for rule, what in verdict.judge(self):
            self.watch.wrong(rule, what)

    def _look(self) -> None:
        """Somebody asks why a job waits."""
        live = [id_ for id_, job in self.watch.jobs.items() if job["state"] not in OVER]
        if live:
            self.watch.waits.look(self.present(), self.looks.choice(live))
        self.hub.after(self.looks.randint(*LOOKS), self._look)

    def _sometime(self, act: Callable[[], None]) -> None:
        span = self.calm_at - self.hub.now
        self.hub.after(self.random.random() * span, act)

    def _calm(self) -> None:
        self.faults.off = True
        self.workers.no_recovery_until = 0
        for process in self.workers.bulk:
            process.asleep_until = min(process.asleep_until, self.hub.now + 45_000)
            if process.old:  # the deployment is over
                process.stopping = True
                self.hub.after(
                    TIMING.stop_timeout * 1000, partial(self.workers.kill, process, "replaced")
                )
        self.hub.note("faults end")
        if self.extras.redrives:
            after = self.extras.random.randint(0, 60_000)
            if not self.extras.wide:
                self.hub.after(after, self.people.redrive)
        self.hub.after(0, self.people.replay)
        if self.extras.stops:
            self.hub.after(0, self.people.let_go_on)


def run(seed: int, *, max_retries: int = 60) -> Run:
    """Simulate one seed."""
    # A run makes little garbage and is soon over: collecting within it takes a third of its time.
    gc.disable()
    try:
        return Scenario(seed, max_retries).run()
    finally:
        gc.enable()
