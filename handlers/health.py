"""Whether a bulk worker can do its work: for its container's health check, and for itself.

``python -m handlers.health`` is the check. It imports nothing that takes time, because it runs
twice a minute beside the worker.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILE: Final = Path(tempfile.gettempdir()) / "fairlane-worker-works"
FRESH: Final = 120.0
"""Seconds: several polls, and the longest pause after a failed one."""
BEAT: Final = 10.0
GIVE_UP: Final = 300.0
"""Seconds without one receive after which a worker ends, and ECS starts another one."""
LONGEST_PAUSE: Final = 30.0


class Health:
    """Of one worker process, shared by its slots. A worker works while it runs a job, and while
    it receives: also nothing, from an empty queue."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        *,
        file: Path = FILE,
        give_up: float = GIVE_UP,
    ) -> None:
        self._now = now
        self._file = file
        self._give_up = give_up
        self._lock = threading.Lock()
        self._last = now()
        self._ever = False
        self._serving = 0
        self._failures = 0
        self._beaten: float | None = None
        # What an earlier process of the container left says nothing of this one.
        with suppress(OSError):
            file.unlink(missing_ok=True)

    def received(self) -> None:
        with self._lock:
            self._last, self._ever, self._failures = self._now(), True, 0

    def failed(self, base: float) -> float:
        """A receive failed: seconds to wait before the next one."""
        with self._lock:
            doubled: int = 1 << min(self._failures, 10)
            self._failures += 1
            return min(LONGEST_PAUSE, base * doubled)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A job runs, for as long as it takes: what hangs is ended by its own bounds."""
        with self._lock:
            self._serving += 1
        try:
            yield
        finally:
            with self._lock:
                self._serving -= 1
                self._last = self._now()

    @property
    def works(self) -> bool:
        with self._lock:
            return self._serving > 0 or (self._ever and self._now() - self._last < FRESH)

    @property
    def hopeless(self) -> bool:
        with self._lock:
            return self._serving == 0 and self._now() - self._last > self._give_up

    def beat(self) -> None:
        """Say to the container's check that this worker works, every few seconds at most."""
        now = self._now()
        if (self._beaten is not None and now < self._beaten + BEAT) or not self.works:
            return
        self._beaten = now
        with suppress(OSError):  # then the check finds no sign, and ECS replaces the task
            self._file.touch()


def check(file: Path = FILE) -> int:
    """The status of the check's process: 0 when there was a sign lately."""
    try:
        return int(time.time() - file.stat().st_mtime >= FRESH)
    except OSError:
        return 1


if __name__ == "__main__":
    sys.exit(check())
