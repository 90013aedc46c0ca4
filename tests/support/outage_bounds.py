"""The bounds that docs/protocol.md states for outages, and what shows when a job went on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.words.job import Lane
from handlers.jobs.words.timing import SECOND
from infra.settings import PRODUCTION_TIMING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import RecordStore, Store
    from handlers.jobs.words.writes import Write

PAGE: Final = Path(__file__).parents[2] / "docs" / "protocol.md"
RECOVERY: Final = 60
"""Seconds between two runs of recovery."""
ROW: Final = re.compile(r"^\| ([^|]+) \|[^|]+\|[^|]+\| `([^`]+)`", re.MULTILINE)
CHUNK_MS: Final = 5 * SECOND
SLACK: Final = 3 * CHUNK_MS
"""The first chunk, the poll of a worker, and a call that began before the end."""


def bounds() -> dict[str, str]:
    """By what is down, the formula of the page."""
    section = PAGE.read_text(encoding="utf-8").partition("## When a dependency is down")[2]
    return dict(ROW.findall(section.partition("\n## ")[0]))


def seconds(formula: str, lane: Lane) -> float:
    """Sums and multiples of numbers, of settings of ``timing`` and of ``recovery``."""
    of_lane = PRODUCTION_TIMING.lane(lane)
    values = {"recovery": RECOVERY, "visibility": of_lane.visibility}
    total = 0.0
    for part in formula.split(" + "):
        factor, _, name = part.rpartition(" x ")
        value = values.get(name)
        if value is None:
            value = getattr(PRODUCTION_TIMING, name)
        total += int(factor or 1) * value
    return total


class Noting:
    """A store that notes when a job committed chunks."""

    def __init__(self, store: Store, runtime: Any) -> None:
        self._store, self._runtime = store, runtime
        self.commits: dict[str, list[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        self._store.transact(action, writes)
        if action == "commit_chunk":
            [job] = {w.key.pk for w in writes if w.key.sk == "JOB"}
            self.commits.setdefault(job.removeprefix("JOB#"), []).append(self._runtime.now())


class Slow:
    """Records that take ``CHUNK_MS`` to read, so that a job is at work when the outage begins."""

    def __init__(self, records: RecordStore, runtime: Any) -> None:
        self._records, self._runtime = records, runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        self._runtime.sleep(CHUNK_MS)
        return self._records.read(tenant, ids)
