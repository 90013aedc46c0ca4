"""Dependencies that fail for everybody for a while, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.timing import HOUR, MINUTE, SECOND
from handlers.jobs.words.writes import Table
from handlers.testing.world import MemoryWorld, memory_world
from infra.settings import PRODUCTION_TIMING

from .sinks import OPERATION

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.testing.runtime import ManualRuntime

    from .sinks import Index

WORKERS: Final = 3
DEPENDENCIES: Final = ("control table", "records", "payloads", "queue", "search")


@dataclass(frozen=True)
class Outage:
    """One dependency fails from ``begins`` until ``ends`` (ms); each failed call takes ``takes``
    ms, as one of a client that waits for its time-out does."""

    dependency: str
    begins: int
    ends: int
    takes: int = 0
    error: type[Exception] = Transient

    def seen_from(self, world: MemoryWorld) -> MemoryWorld:
        """The world in which the dependency fails."""

        def down(port: object, *, when: Callable[[str, Any], bool] = lambda *_: True) -> Any:
            return _Port(port, self, world.runtime, when)

        match self.dependency:
            case "control table":
                return replace(world, store=down(world.store))
            case "records":
                store = down(world.store, when=_writes_records)
                return replace(world, store=store, records=down(world.records, when=_reads))
            case "payloads":
                return replace(world, payloads=down(world.payloads))
            case "queue":
                return replace(world, queues={n: down(q) for n, q in world.queues.items()})
            case "small queue" | "bulk queue":
                lane = Lane(self.dependency.removesuffix(" queue"))
                return replace(world, queues={**world.queues, lane: down(world.queues[lane])})
            case "search":
                return replace(world, sinks={n: down(s) for n, s in world.sinks.items()})
            case "source":
                return replace(world, query=down(world.query))
            case "listeners":
                return replace(world, listeners={n: down(e) for n, e in world.listeners.items()})
        raise ValueError(self.dependency)


def _writes_records(name: str, arguments: Any) -> bool:
    return name == "transact" and any(w.key.table is Table.RECORDS for w in arguments[1])


def _reads(name: str, _arguments: Any) -> bool:
    return name == "read"


class _Port:
    """A port whose calls fail while its dependency is down."""

    def __init__(
        self,
        port: object,
        outage: Outage,
        runtime: ManualRuntime,
        when: Callable[[str, Any], bool],
    ) -> None:
        self._port = port
        self._outage = outage
        self._runtime = runtime
        self._when = when

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            outage = self._outage
            down = outage.begins <= self._runtime.now() < outage.ends
            if down and self._when(name, arguments):
                self._runtime.sleep(outage.takes)
                raise outage.error(f"the {outage.dependency} is down")
            return found(*arguments, **named)

        return call


def deployed(index: Index | None = None) -> MemoryWorld:
    """A world with the times of a deployment, and a sink if there is an index."""
    operations = None if index is None else {"bump": OPERATION}
    world = memory_world(timing=PRODUCTION_TIMING, limits=Limits(chunk_size=96))
    made: dict[str, Any] = {} if index is None else {"sinks": {"index": index}}
    if operations is not None:
        made["operations"] = operations
    return MemoryWorld(**{**vars(world), **made})


def work(
    world: MemoryWorld, over: Callable[[], bool], *, functions: int = WORKERS, bulk: int = 1
) -> None:
    """Functions, bulk workers and a recovery run each minute, until it is over."""
    ended = world.runtime.event()

    def consume(lane: Lane, name: str) -> None:
        while not ended.is_set():
            try:
                taken = _consume(world, lane, name)
            except Transient:
                taken = False
            if not taken:
                ended.wait(5 * SECOND)

    tasks = [
        world.runtime.spawn(name, partial(consume, lane, name))
        for lane, count in ((Lane.SMALL, functions), (Lane.BULK, bulk))
        for name in (f"{lane}{n}" for n in range(count))
    ]
    begun = world.runtime.now()
    while not over():
        assert world.runtime.now() < begun + 6 * HOUR, "it never ends"
        Recovery(world).run()
        world.runtime.sleep(MINUTE)
    ended.set()
    for task in tasks:
        task.join()


def _consume(world: MemoryWorld, lane: Lane, name: str) -> bool:
    """Run a message, if there is one. Raises Transient when the queue is down."""
    queue = world.queues[lane]
    for delivery in queue.receive(1, 0):
        deadline = world.runtime.now() + MINUTE if lane is Lane.SMALL else None
        worker = Worker(f"{name}/{world.runtime.token()}", deadline=deadline)
        apply_decision(queue, delivery, on_message(world, delivery, worker))
        return True
    return False
