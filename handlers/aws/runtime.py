"""Real time, real chance, real threads."""

from __future__ import annotations

import random
import secrets
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..jobs.words.ports import Event, Task

_NANOSECONDS = 1_000_000


class SystemEvent:
    """``Event`` between threads."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_ms: int) -> bool:
        return self._event.wait(timeout_ms / 1000)


class SystemRuntime:
    """``Runtime`` of a deployed process."""

    def now(self) -> int:
        return time.time_ns() // _NANOSECONDS

    def sleep(self, ms: int) -> None:
        time.sleep(max(0, ms) / 1000)

    def random(self) -> float:
        return random.random()  # noqa: S311 - jitter, not a secret

    def token(self) -> str:
        return secrets.token_hex(10)

    def event(self) -> Event:
        return SystemEvent()

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread
