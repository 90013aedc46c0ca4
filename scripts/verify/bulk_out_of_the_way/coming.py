"""Small jobs that come one after another, whatever becomes of those before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .town import Town

SMALL: Final = "small"
ITEMS: Final = 10
EVERY_S: Final = 0.25


@dataclass(frozen=True)
class Coming:
    here: Town
    ids: list[str]
    """Records of the tenant with small jobs."""
    every: float
    """Seconds."""

    @classmethod
    def of(cls, here: Town, *, most: int, every: float = EVERY_S) -> Coming:
        """most: jobs at once."""
        return cls(here, here.load(SMALL, ITEMS * most), every)

    def come(self, count: int, *, meanwhile: Callable[[], object] = lambda: None) -> list[int]:
        """The dwells (ms) of so many jobs once all have ended. meanwhile: called after each."""
        start = time.monotonic()
        made = []
        for number in range(count):
            time.sleep(max(0.0, start + number * self.every - time.monotonic()))
            ids = self.ids[number * ITEMS : (number + 1) * ITEMS]
            made.append(self.here.submit(SMALL, ids))
            meanwhile()
        rows = self.here.ended(made)
        return [row.dwell_ms for row in rows if row.dwell_ms is not None]
