"""Dependencies that fail for everybody for a while, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.words.errors import Transient
from handlers.jobs.words.writes import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.testing.runtime import ManualRuntime
    from handlers.testing.world import MemoryWorld

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
            case "search":
                return replace(world, sinks={n: down(s) for n, s in world.sinks.items()})
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
