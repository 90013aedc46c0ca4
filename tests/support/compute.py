"""What runs code fails for a while, in virtual time: functions, workers, or the schedule of
recovery."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.job import Lane
from handlers.jobs.words.timing import HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from handlers.jobs.words.ports import Task, World
    from handlers.testing.runtime import ManualRuntime
    from handlers.testing.world import MemoryWorld

RECOVERY: Final = "recovery"
POLL: Final = 5 * SECOND
LONGEST: Final = 24 * HOUR


class Killed(BaseException):
    """The process has ended; nothing of it runs any more."""


@dataclass(frozen=True)
class ComputeOutage:
    """Nothing of what is down runs from ``begins`` until ``ends`` (ms), and what runs at the
    beginning is killed."""

    down: AbstractSet[str]
    """Lanes whose workers are down, and ``RECOVERY``."""
    begins: int
    ends: int
    deaf: bool = False
    """Messages are received all the same, and handed to nobody: Lambda's pollers go on."""

    def is_down(self, what: str, now: int) -> bool:
        return what in self.down and self.begins <= now < self.ends


def mortal(world: World, dead: Callable[[], bool]) -> World:
    """The world as a process sees it that ends when ``dead`` says so: every call from then on
    raises Killed, in all of its threads."""

    def port(inner: object) -> Any:
        return _MortalPort(inner, dead)

    return replace(
        world,
        store=port(world.store),
        records=port(world.records),
        queues={lane: port(queue) for lane, queue in world.queues.items()},
        payloads=port(world.payloads),
        runtime=_MortalRuntime(world.runtime, dead),
        sinks={name: port(sink) for name, sink in world.sinks.items()},
        listeners={name: port(each) for name, each in world.listeners.items()},
    )


class _MortalPort:
    def __init__(self, inner: object, dead: Callable[[], bool]) -> None:
        self._inner, self._dead = inner, dead

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            if self._dead():
                raise Killed
            result = found(*arguments, **named)
            if self._dead():
                raise Killed
            return result

        return call


class _MortalRuntime(_MortalPort):
    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        def body() -> None:
            try:
                run()
            except Killed:
                return

        task: Task = self._inner.spawn(name, body)  # type: ignore[attr-defined]  # it is a runtime
        return task

    def event(self) -> Any:
        """Waiting for the process's own threads ends with the process: they end, too."""
        return self._inner.event()  # type: ignore[attr-defined]  # it is a runtime


def work_through(
    world: MemoryWorld, outage: ComputeOutage, over: Callable[[], bool], *, workers: int
) -> None:
    """Workers of each lane, and a recovery run each minute where it is not down, until it is
    over."""
    runtime = world.runtime
    ended = runtime.event()

    def consume(lane: Lane, name: str) -> None:
        while not ended.is_set():
            try:
                taken = _consume(world, outage, lane, name)
            except Killed:
                taken = False
            if not taken:
                ended.wait(POLL)

    tasks = [
        runtime.spawn(name, partial(consume, lane, name))
        for lane in Lane
        for name in (f"{lane}{n}" for n in range(workers))
    ]
    begun = runtime.now()
    while not over():
        assert runtime.now() < begun + LONGEST, "it never ends"
        if not outage.is_down(RECOVERY, runtime.now()):
            Recovery(world).run()
        runtime.sleep(MINUTE)
    ended.set()
    for task in tasks:
        task.join()


def _consume(world: MemoryWorld, outage: ComputeOutage, lane: Lane, name: str) -> bool:
    """Run a message, if there is one. Raises Killed when the outage begins meanwhile."""
    runtime: ManualRuntime = world.runtime
    began = runtime.now()
    if outage.is_down(lane, began):
        if outage.deaf:
            world.queues[lane].receive(10, 0)
        return False
    seen: World = world
    if lane in outage.down and began < outage.begins:
        seen = mortal(world, lambda: runtime.now() >= outage.begins)
    for delivery in world.queues[lane].receive(1, 0):
        deadline = began + MINUTE if lane is Lane.SMALL else None
        worker = Worker(f"{name}/{runtime.token()}", deadline=deadline)
        apply_decision(seen.queues[lane], delivery, on_message(seen, delivery, worker))
        return True
    return False
