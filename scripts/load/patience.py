"""Waiting for as long as something moves: how long work takes is the machine's business."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

STALLED_S: Final = 300
"""Without any change for this long, work hangs: every message has come back many times by then."""


class Patience:
    """Ends when what is looked at has stayed the same for ``seconds``."""

    def __init__(
        self, seconds: float = STALLED_S, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._now = now
        self._since = now()
        self._seen: object = None

    def lasts(self, seen: object) -> bool:
        """seen: how far the work has come; compared with the look before."""
        if seen != self._seen:
            self._seen, self._since = seen, self._now()
        return self._now() - self._since < self._seconds
