"""Part 1, of bulk work whose operation is slow: the database has time for everybody, so the
governor takes nothing from it.

A worker with the governor and one without work side by side on the same lane while small jobs come,
so both meet the same machine. Judged is the median over windows of the ratio of what a slot of each
did. What is slow depends on the machine: the operation takes a few times what a record takes when
only the database is waited for. And a machine that is busy with other things makes small jobs wait,
too, of which the governor cannot know the reason: a window begins at full pace, and counts when the
database was idle for most of the time and the small lane told of no trouble for most of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from handlers.jobs.execution.governor import FRESH
from handlers.jobs.execution.pace import Baseline, summary_of, trouble_in
from handlers.jobs.storage.small_dwell import read_dwells
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.job import Lane
from handlers.jobs.words.pace import PaceSettings
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.load.patience import STALLED_S, Patience
from scripts.local.errors import LocalError
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .coming import Coming
from .load_of import DatabaseLoad
from .town import ADD_SLOWLY, Town, town

BULK: Final = tuple(f"slow-{number}" for number in range(3))
"""More tenants than slots, with one job at a time in each: a message always waits for a free slot,
and no two jobs are on the same records."""
EACH: Final = 3000
LEFT: Final = 2
"""Jobs of each bulk tenant that have not ended when a window begins."""
WARM: Final = 40
"""Small jobs before the first window: connections, imports, and what quiet times are."""
SLOWER: Final = 12
"""How many times longer than the rest of its work the operation takes for a record."""
LEAST_MS: Final = 10
MOST_MS: Final = 500
MEASURED: Final = 2000
"""Records by which it is known what that is."""
SMALL_JOBS: Final = 8
"""That come in one go."""
CHUNKS: Final = 2
"""Of each worker in a window, at the least, if they are full."""
EVERY_S: Final = 0.5
WINDOWS: Final = 5
MOST_WINDOWS: Final = 12
TROUBLED: Final = 0.5
"""Of the looks in a window: the most in which the small lane tells of trouble."""
IDLE: Final = 0.5
"""Of a window's time: the most that the database works or waits for a processor."""
LOOKS: Final = 40
"""Seconds until the governor is back at full pace when no small job comes, at the most."""
KEPT: Final = 0.97


@dataclass(frozen=True)
class Window:
    governed: float
    free: float
    """Records a second of a slot while it worked."""
    quiet: bool
    """The governor was at full pace at the beginning, and in most looks the small lane told of no
    trouble."""
    database: float | None
    """The share of the time that the database worked; None where nobody knows."""

    @property
    def shows(self) -> bool:
        return self.quiet and (self.database is None or self.database <= IDLE)

    @property
    def kept(self) -> float:
        return self.governed / max(self.free, 0.001)


def run(bench: Bench) -> Iterator[Seen]:
    windows = bench.once("slow bulk", lambda: _measure(bench))
    shown = [each for each in windows if each.shows]
    loads = [each.database for each in windows if each.database is not None]
    yield Expectation.of(
        "part 1: windows with slow bulk work in which the database had time",
        expected=f"at least {WINDOWS}",
        saw=f"{len(shown)} of {len(windows)}; the database worked "
        + (f"{min(loads):.2f} to {max(loads):.2f} of the time" if loads else "unknown"),
        ok=len(shown) >= WINDOWS,
    )
    if shown:
        yield kept(shown)
    yield Information(
        what="part 1: the same share over all windows",
        beside="in the others, small jobs waited for other work on the machine",
        saw=f"{median(each.kept for each in windows):.3f}",
    )


def kept(windows: Sequence[Window]) -> Expectation:
    shares = [each.kept for each in windows]
    return Expectation.of(
        "part 1: throughput of bulk work whose operation is slow, with the governor against "
        "without",
        expected=f"at least {KEPT}",
        saw=f"{median(shares):.3f} ({min(shares):.2f} to {max(shares):.2f}): "
        f"{median(each.governed for each in windows):.0f} and "
        f"{median(each.free for each in windows):.0f} records/s of a slot",
        ok=median(shares) >= KEPT,
    )


def _measure(bench: Bench) -> list[Window]:
    here = town(bench, "slow")
    ids = {who: here.load(who, EACH) for who in BULK}
    for who in BULK:
        set_slots(here.world, here.tenant(who), Lane.BULK, 1)
    small = Coming.of(here, most=WARM, every=EVERY_S)
    small.come(WARM)
    windows: list[Window] = []
    same = {"bulk_slots": 1, "timing_slice": 0}
    with (
        here.working(same) as [governed],
        here.working({**same, "pace_on": False}) as [free],
    ):
        ms = min(MOST_MS, max(LEAST_MS, round(SLOWER * _rest_of_the_work(here, ids))))
        while sum(each.shows for each in windows) < WINDOWS and len(windows) < MOST_WINDOWS:
            bulk = here.line(ids, LEFT, **slowly(ms))
            here.running(bulk, 2)
            windows.append(_window(here, small, bulk, governed.pid, free.pid))
            counts = "" if windows[-1].shows else ": does not count"
            bench.steps.say(
                f"part 1, slow bulk work, window {len(windows)}: {windows[-1].kept:.3f}{counts}"
            )
        here.clear()
    return windows


def slowly(ms: int) -> Mapping[str, Any]:
    return {"operation": ADD_SLOWLY["operation"], "params": {"add": 1, "ms": ms}}


def _rest_of_the_work(here: Town, ids: Mapping[str, list[str]]) -> float:
    """What a slot needs for a record of an operation that takes no time (ms), while every slot
    works."""
    bulk = here.line(ids, LEFT, **slowly(0))

    def enough(rows: Sequence[JobRow]) -> bool:
        return sum(row.position for row in rows) >= MEASURED

    rows = here.until("bulk jobs work", bulk, enough)
    here.clear()
    return sum(row.worked_ms for row in rows) / sum(row.position for row in rows)


def _window(here: Town, small: Coming, bulk: list[str], governed: int, free: int) -> Window:
    full, troubles = _full_pace(here, bulk, governed), list[bool]()
    database, began = DatabaseLoad.of(here.stack), here.world.runtime.now()
    before = here.rows(bulk)
    least = CHUNKS * here.ledger.settings.limits.chunk_size
    patience = Patience()
    while True:
        small.come(SMALL_JOBS, meanwhile=lambda: troubles.append(_trouble(here, began)))
        after = here.rows(bulk)
        with_, without = done_by(governed, before, after), done_by(free, before, after)
        enough = min(with_.records, without.records) >= least
        if enough or all(row.state.terminal for row in after):
            quiet = full and sum(troubles) <= TROUBLED * len(troubles)
            return Window(with_.rate, without.rate, quiet, database.share())
        if not patience.lasts((with_, without)):
            raise LocalError(f"slow bulk work has not gone on for {STALLED_S} s")


def _full_pace(here: Town, bulk: list[str], governed: int) -> bool:
    """Whether the governor's worker comes back to full pace."""
    for _ in range(LOOKS):
        rows = [row for row in here.rows(bulk) if process_of(row) == governed]
        now = [row for row in rows if row.state is State.RUNNING and row.position]
        if now and all(row.pace is None for row in now):
            return True
        time.sleep(1)
    return False


def _trouble(here: Town, since: int) -> bool:
    """Whether what the small lane left of late gives a governor a reason to slow down."""
    now = here.world.runtime.now()
    small = summary_of(read_dwells(here.world, since=max(since, now - FRESH)))
    return trouble_in((), Baseline(), small, PaceSettings()) is not None


@dataclass(frozen=True)
class Done:
    records: int
    ms: int
    """Working time."""

    @property
    def rate(self) -> float:
        """Records a second."""
        return 1000 * self.records / max(self.ms, 1)


def done_by(process: int, before: Sequence[JobRow], after: Sequence[JobRow]) -> Done:
    """What the worker with that process id did between two looks, of whole chunks. A job that
    changed its worker meanwhile counts for neither."""
    records = ms = 0
    for was, now in zip(before, after, strict=True):
        if process in {process_of(was), process_of(now)} <= {process, None}:
            records += now.position - was.position
            ms += now.worked_ms - was.worked_ms
    return Done(records, ms)


def process_of(row: JobRow) -> int | None:
    """The id of the process that last worked on it; see ``slots.serve`` for the name."""
    return None if row.worker is None else int(row.worker.split("/")[1])
