"""How busy the local AWS's database is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from scripts.local.stack import LocalStack


@dataclass(frozen=True)
class DatabaseLoad:
    """From a moment on. The database is one thread of one process, so the time in which it worked,
    or would have with a processor of its own, is the time in which it was not idle."""

    pid: int
    began: float
    busy: float | None

    @classmethod
    def of(cls, stack: LocalStack) -> DatabaseLoad:
        process = stack.state.database
        pid = process.pid if process else 0
        return cls(pid, time.monotonic(), busy_s(pid))

    def share(self) -> float | None:
        """The share of the time since then; None where the operating system does not tell."""
        now = busy_s(self.pid)
        if now is None or self.busy is None:
            return None
        return (now - self.busy) / max(time.monotonic() - self.began, 0.001)


def busy_s(pid: int) -> float | None:
    """Seconds that the process's main thread ran or was ready to run (Linux: ``schedstat`` has both
    in ns)."""
    try:
        text = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii")
        ran, waited, _ = map(int, text.split())
    except (OSError, ValueError):
        return None
    return (ran + waited) / 1e9
