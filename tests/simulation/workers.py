"""The processes that work on messages, and recovery: who starts them, hands them messages, and ends
them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.turns import FreeSlot
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from handlers.testing.lane_queue import MemoryLaneQueue

from .hub import Process
from .threads import Killed
from .timing import TIMING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.words.ports import Delivery, World
    from handlers.testing.lane_queue import Stored

    from .scenario import Scenario

WAKES: Final = 0.3
"""How likely a worker that stands still wakes at the worst moment."""
MAX_FUNCTIONS: Final = 3
SLOTS: Final = 2
"""Jobs a bulk worker runs at once."""


@dataclass
class Workers:
    """Those of one scenario, with its dice."""

    here: Scenario
    bulk: list[Process] = field(default_factory=list)
    running: dict[Process, int] = field(default_factory=dict)
    """Messages that each process has in hand."""
    free: dict[Process, list[FreeSlot]] = field(default_factory=dict)
    """The slots of each bulk worker that have no message."""
    unheard: dict[str, bool] = field(default_factory=dict)
    """Messages by id: whether their receives reach nobody."""
    no_recovery_until: int = 0
    polls: tuple[int, ...] = (20, 100, 500, 1500)
    """ms until free slots and functions are given messages again."""
    slots: int = SLOTS
    most: int = 100
    """Bulk workers that are hired at once."""

    def deliver(self) -> None:
        """The event source mapping and the long polls: whoever is free gets what is visible."""
        for lane, queue in self.here.queues.items():
            if self.here.hub.now < self.here.behind.get(lane, 0):
                continue
            while any(m.visible_at <= self.here.hub.now for m in queue._stored.values()):
                if not (self._invoke if lane is Lane.SMALL else self._hand_out)(queue):
                    break
        self.here.hub.after(self.here.random.choice(self.polls), self.deliver)

    def _invoke(self, queue: MemoryLaneQueue) -> bool:
        if sum(process.name.startswith("fn") for process in self.busy()) >= MAX_FUNCTIONS:
            return False
        batch = queue.receive(self.here.extras.random.randint(1, self.here.extras.batch), 0)
        batch = [delivery for delivery in batch if self._reaches(delivery)]
        if not batch:
            return False
        process = self.here.process("fn")
        lasts = TIMING.function_timeout * 1000
        if len(batch) > 1:
            self.here.watch.seen["batch"] += 1
        self._start_function(process, batch, self.here.hub.now + lasts)
        self.here.hub.after(lasts, partial(self.kill, process, "time-out"))
        return True

    def _hand_out(self, queue: MemoryLaneQueue) -> bool:
        self.bulk = [process for process in self.bulk if not process.dead]
        if not self.bulk and (self.here.faults.off or self.here.random.random() < 0.3):
            self.hire()
        for process in self.bulk:
            awake = process.asleep_until <= self.here.hub.now
            if self.running.get(process, 0) < self.slots and not process.stopping and awake:
                for delivery in filter(self._reaches, queue.receive(1, 0)):
                    self._start_job(process, delivery)
                    return True
                return False
        if self.here.faults.off and all(
            p.stopping or p.asleep_until > self.here.hub.now for p in self.bulk
        ):
            self.hire()
            return True
        return False

    def _reaches(self, delivery: Delivery) -> bool:
        """Whether anybody hears of this receive: its answer may be lost, or its function not
        start. What befalls one message befalls it again."""
        here, id_ = self.here, delivery.message_id
        if here.faults.off or not here.extras.unheard:
            return True
        if id_ not in self.unheard:
            self.unheard[id_] = here.extras.random.random() < here.extras.unheard
        if self.unheard[id_]:
            here.hub.note("received by nobody", delivery)
        return not self.unheard[id_]

    def busy(self) -> list[Process]:
        for process in [process for process in self.running if process.dead]:
            del self.running[process]
        return list(self.running)

    def rouse(self) -> None:
        """A worker that stood still wakes just when somebody is about to take its subject, and is
        the faster one."""
        for process in self.bulk:
            if process.asleep_until > self.here.hub.now and self.here.random.random() < WAKES:
                self.here.hub.after(
                    self.here.random.random() * 50, partial(self.here.hub.rouse, process)
                )
                assert self.here.hub.current is not None
                self.here.hub.current.process.asleep_until = (
                    self.here.hub.now + self.here.random.randint(50, 1500)
                )

    def hire(self) -> None:
        self.bulk.append(self.here.process("worker"))
        if len(self.bulk) < self.most and self.here.random.random() < 0.3:
            self.bulk.append(self.here.process("worker"))

    def _start_function(self, process: Process, batch: Sequence[Delivery], deadline: int) -> None:
        self._received(process, batch)

        def work() -> None:
            self.here.functions.serve(process, batch, deadline)
            self._left(process)
            self.here.hub.kill(process)
            raise Killed

        self.here.hub.start(process, "", work)

    def _start_job(self, process: Process, delivery: Delivery) -> None:
        self._received(process, [delivery])
        name = f"{process.name}/{delivery.receipt}"
        free = self.free.setdefault(process, [FreeSlot() for _ in range(self.slots)])
        slot = free.pop(0)
        worker = Worker(name, stopping=lambda: process.stopping, slot=slot)

        def work() -> None:
            world = self.here.world_of(process)
            self.here.hub.note("received", delivery)
            decision = on_message(world, delivery, worker)
            self.here.hub.note("decided", decision)
            if _carry_out(world, delivery, decision):
                self.here.watch.decided.add(delivery.receipt)
            free.append(slot)
            self._left(process)

        self.here.hub.start(process, "", work)

    def _received(self, process: Process, batch: Sequence[Delivery]) -> None:
        for delivery in batch:
            self.here.watch.received[delivery.receipt] = self.here.hub.now
        self.running[process] = self.running.get(process, 0) + 1

    def _left(self, process: Process) -> None:
        self.running[process] -= 1
        if self.running[process] <= 0:
            del self.running[process]

    def stop_one(self) -> None:
        """SIGTERM, and SIGKILL when it takes too long."""
        if not self.bulk:
            return
        process = self.here.random.choice(self.bulk)
        process.stopping = True
        self.here.hub.note("SIGTERM", process.name)
        self.here.hub.after(TIMING.stop_timeout * 1000, partial(self.kill, process, "SIGKILL"))

    def kill(self, process: Process, why: str) -> None:
        if not process.dead:
            self.here.hub.note(why, process.name)
            self.here.hub.kill(process)

    # --- recovery -----------------------------------------------------------------------------

    def recover(self) -> None:
        if self.here.hub.now >= self.no_recovery_until:
            for _ in range(1 if self.here.random.random() < 0.8 else 2):
                process = self.here.process("recovery")
                self.here.hub.start(process, "", partial(_recover, self.here.world_of(process)))
                self.here.hub.after(55_000, partial(self.kill, process, "time-out"))
        self.here.hub.after(self.here.random.randint(3000, 9000), self.recover)


class DeadLetters(MemoryLaneQueue):
    """Knows how often each message had been received when it was given up."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.receives: dict[str, int] = {}

    def accept_dead_letter(self, message: Stored, now: int) -> None:
        super().accept_dead_letter(message, now)
        self.receives[message.message_id] = message.receive_count


def _recover(world: World) -> None:
    Recovery(world).run()


def _carry_out(world: World, delivery: Delivery, decision: Decision) -> bool:
    """What a bulk worker does with a decision; false when the queue did not take it."""
    try:
        apply_decision(world.queues[Lane.BULK], delivery, decision)
    except FairlaneError:
        return False
    return True
