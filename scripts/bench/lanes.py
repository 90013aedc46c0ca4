"""Small jobs that come at a pace, alone and beside bulk work: the same for every system."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from scripts.load.measures import percentile
from scripts.local.errors import LocalError

PACE: Final = 0.25
"""Seconds from one small job to the next, whatever became of those before."""
ITEMS: Final = 10
"""Records of a small job."""
SMALL_TENANT: Final = "small"
BULK_TENANTS: Final = ("bulk-0", "bulk-1", "bulk-2", "bulk-3")
"""Each with records of its own, so that no two bulk jobs change the same."""
WITHIN_S: Final = 300
LOOK_S: Final = 0.2
TRIES: Final = 4


class System(Protocol):
    """What is measured. A method raises LocalError when what it waits for does not come."""

    def fill(self, jobs: int) -> None:
        """Submit so many bulk jobs; return when every slot for them works."""

    def small(self, number: int) -> None:
        """Submit a small job over the records of that number."""

    def waits(self) -> Sequence[float]:
        """Of the small jobs since the last ``drain``, when all of them have ended: milliseconds
        from the moment each was accepted to the moment its work began."""

    def full(self) -> bool:
        """Every slot for bulk jobs still works."""

    def done(self) -> int:
        """Records that bulk jobs have changed since the last ``drain``."""

    def drain(self) -> None:
        """Give up the bulk work that is left. Nothing runs afterwards."""


@dataclass(frozen=True)
class Phase:
    """Of small jobs: milliseconds. Of bulk jobs: records a second."""

    p50: float
    p95: float
    bulk: float


class Load:
    """So many small jobs in each phase, and so much bulk work in front of them that it lasts."""

    def __init__(self, small: int, bulk: int = 2 * len(BULK_TENANTS)) -> None:
        self.small = small
        self._bulk = bulk

    def idle(self, system: System) -> Phase:
        phase = self._small_jobs(system)
        system.drain()
        return phase

    def loaded(self, system: System) -> Phase:
        """Every slot for bulk jobs is at work all the time; a faster machine gets more of them."""
        for _ in range(TRIES):
            system.fill(self._bulk)
            phase = self._small_jobs(system)
            lasted = system.full()
            system.drain()
            if lasted:
                return phase
            self._bulk *= 2
        raise LocalError(f"{self._bulk // 2} bulk jobs end before {self.small} small ones")

    def behind(self, system: System, jobs: int) -> Phase:
        """So many bulk jobs were there before the first small one came, and no more."""
        system.fill(jobs)
        return self.idle(system)

    def _small_jobs(self, system: System) -> Phase:
        start, done = time.monotonic(), system.done()
        for number in range(self.small):
            time.sleep(max(0.0, start + number * PACE - time.monotonic()))
            system.small(number)
        waits = sorted(system.waits())
        bulk = (system.done() - done) / (time.monotonic() - start)
        return Phase(percentile(waits, 50), percentile(waits, 95), bulk)


def until(what: str, holds: Callable[[], bool]) -> None:
    """Raises LocalError when it does not come to hold."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise LocalError(f"{what}: not within {WITHIN_S} s")
        time.sleep(LOOK_S)
