"""One process's view of a world in memory: it can be interrupted, suspended, cut off or killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from handlers.jobs.words.errors import OutcomeUnknown
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Write
    from handlers.testing.runtime import ManualRuntime
    from handlers.testing.world import MemoryWorld

LONG = 10**9


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class ProcessStore(MemoryStore):
    """The same items as another store, with something before and after each transaction."""

    def __init__(self, below: MemoryStore, runtime: ManualRuntime) -> None:
        vars(self).update(vars(below))  # the same items under the same lock
        self._runtime = runtime
        self._resumed = runtime.event()
        self._suspended = False
        self.before: Callable[[str], None] = lambda _action: None
        self.after: Callable[[str], None] = lambda _action: None
        self.done: list[tuple[int, str]] = []
        """When (ms) each transaction took effect."""

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        if self._suspended:
            self._resumed.wait(LONG)
        self.before(action)
        super().transact(action, writes)
        self.done.append((self._runtime.now(), action))
        self.after(action)

    def suspended_while(self, meanwhile: Callable[[], None]) -> None:
        """Every other thread of the process stands still too, at its next transaction."""
        self._suspended = True
        meanwhile()
        self._suspended = False
        self._resumed.set()

    def times(self, action: str) -> int:
        return sum(done == action for _, done in self.done)


def process(world: MemoryWorld) -> tuple[MemoryWorld, ProcessStore]:
    """The world as one process sees it, and the store where it can be got at."""
    store = ProcessStore(world.store, world.runtime)
    return replace(world, store=store, records=MemoryRecordStore(store)), store


def nth(number: int, action: str, act: Callable[[], object]) -> Callable[[str], None]:
    """Do something at the n-th transaction of this name."""
    seen = 0

    def at(name: str) -> None:
        nonlocal seen
        if name == action:
            seen += 1
            if seen == number:
                act()

    return at


def die() -> None:
    raise Killed


def lose() -> None:
    """The reply of what was just written."""
    raise OutcomeUnknown
