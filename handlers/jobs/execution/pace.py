"""The rules of pace: how fast a bulk worker may go, from what it measured. Pure functions.

The pace is a number from the floor to 1. A worker lowers it in proportion to the trouble it sees,
and raises it by a small step for each second without. All workers see the same trouble, and a cut
takes most from the fastest, so their paces meet although no worker knows of another.

Smaller chunks come first: they cost little throughput, and what waits for the database waits for
one chunk at most. Below ``GENTLE`` the worker pauses between chunks, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ..words.pace import PacedBy, PaceSettings, SmallDwell

FULL: Final = 1.0
GENTLE: Final = 0.25
"""The pace below which a worker pauses. Slow commits alone never lower it further: other bulk work
makes them slow, too."""
STEP: Final = 0.03
"""What a second without trouble adds: half a minute from the floor to full pace."""
DEEPEST: Final = 0.5
LIGHTEST: Final = 0.9
"""The share of the pace that one cut leaves, at the least and at the most."""
LEAST_CHUNK: Final = 8
"""Records; of smaller chunks, the checkpoint would be most of the work."""
LONGEST_PAUSE: Final = 1000
"""ms."""
SLACK: Final = 20
"""ms that a wait or a commit may always take longer than in quiet times: clocks differ, and nobody
notices."""
MAX_CONFLICTS: Final = 0.2
"""The share of tries that conflicts may refuse."""
OTHER_BULK: Final = 1.5
"""Commits may take so many times the target: other bulk jobs slow them down, and harm no client."""
MIN_TRIES: Final = 3
"""Tries in a window that say something about latency or conflicts."""


@dataclass(frozen=True)
class CommitTry:
    """One try of a chunk's transaction."""

    at: int
    """When it was answered, epoch ms."""
    ms: int
    records: int
    refused: PacedBy | None = None
    """THROTTLING or CONFLICTS; None: the transaction was written."""


@dataclass(frozen=True)
class Baseline:
    """How long commits take in quiet times, by the size of the chunk: the least median of a window
    in two spans of minutes. A database that has become slower for good is the new normal once both
    are over."""

    now: Mapping[int, float] = field(default_factory=dict)
    before: Mapping[int, float] = field(default_factory=dict)

    def with_window(self, tries: Sequence[CommitTry]) -> Baseline:
        by_size: dict[int, list[int]] = {}
        for each in tries:
            if each.refused is None:
                by_size.setdefault(_size(each.records), []).append(each.ms)
        measured = {size: median(took) for size, took in by_size.items()}
        least = {s: min(took, self.now.get(s, took)) for s, took in measured.items()}
        return Baseline({**self.now, **least}, self.before)

    def next_span(self) -> Baseline:
        return Baseline({}, self.now)

    def of(self, records: int) -> float | None:
        """The quiet time (ms) of a chunk of so many records; None when it is not known. Of another
        size, it is as long for fewer records, and in proportion for more."""
        known = {
            size: min(found)
            for size in {*self.now, *self.before}
            if (found := [span[size] for span in (self.now, self.before) if size in span])
        }
        size = _size(records)
        if size in known:
            return known[size]
        nearest = min(known, key=lambda other: abs(other - size), default=None)
        if nearest is None:
            return None
        return known[nearest] * float(2 ** max(0, size - nearest))


def _size(records: int) -> int:
    """The size class of a chunk: each holds chunks of up to twice the records of the one before."""
    return records.bit_length()


@dataclass(frozen=True)
class Trouble:
    """A reason to slow down."""

    why: PacedBy
    times: float
    """How many times more than tolerated."""


def trouble_in(
    tries: Sequence[CommitTry],
    baseline: Baseline,
    small: SmallDwell | None,
    settings: PaceSettings,
) -> Trouble | None:
    """The worst trouble in a window of measurements. small: None when nothing new is known of the
    small lane."""
    found = (_dwell(small, settings), _refused(tries), _latency(tries, baseline, settings))
    return max((t for t in found if t is not None), key=lambda t: t.times, default=None)


def _dwell(small: SmallDwell | None, settings: PaceSettings) -> Trouble | None:
    if small is None or small.ms <= small.quiet_ms + SLACK:
        return None
    times = small.ms / (max(small.quiet_ms, 1) * settings.target)
    return Trouble(PacedBy.SMALL_LANE, times) if times > 1 else None


def _refused(tries: Sequence[CommitTry]) -> Trouble | None:
    if any(each.refused is PacedBy.THROTTLING for each in tries):
        return Trouble(PacedBy.THROTTLING, 1 / DEEPEST)
    if len(tries) < MIN_TRIES:
        return None
    share = sum(each.refused is PacedBy.CONFLICTS for each in tries) / len(tries)
    return Trouble(PacedBy.CONFLICTS, share / MAX_CONFLICTS) if share > MAX_CONFLICTS else None


def _latency(
    tries: Sequence[CommitTry], baseline: Baseline, settings: PaceSettings
) -> Trouble | None:
    times: list[float] = []
    for each in tries:
        quiet = None if each.refused else baseline.of(each.records)
        if quiet is not None:
            slow = each.ms > quiet + SLACK
            times.append(each.ms / (max(quiet, 1) * OTHER_BULK * settings.target) if slow else 0)
    if len(times) < MIN_TRIES or (typical := median(times)) <= 1:
        return None
    return Trouble(PacedBy.LATENCY, typical)


def next_pace(pace: float, trouble: Trouble | None, settings: PaceSettings) -> float:
    """The pace after a second with or without trouble."""
    if trouble is None:
        return min(FULL, pace + STEP)
    cut = pace * min(LIGHTEST, max(DEEPEST, 1 / trouble.times))
    floor = settings.floor_percent / 100
    if trouble.why is PacedBy.LATENCY:
        floor = max(floor, min(pace, GENTLE))
    return max(floor, cut)


def chunk_size(pace: float, most: int) -> int:
    """Records of the next chunk. most: those of a chunk at full pace."""
    return max(min(LEAST_CHUNK, most), min(most, round(most * pace)))


def pause_ms(pace: float, chunk_ms: int) -> int:
    """The pause after a chunk that took so long: the work is ``pace ÷ GENTLE`` of the time."""
    if pace >= GENTLE:
        return 0
    return min(LONGEST_PAUSE, round(chunk_ms * (GENTLE / pace - 1)))


def summary_of(dwells: Iterable[tuple[int, int]]) -> SmallDwell | None:
    """What samples (dwell, quiet dwell; ms) of several processes say together."""
    samples = list(dwells)
    if not samples:
        return None
    return SmallDwell(
        ms=round(median(dwell for dwell, _ in samples)),
        quiet_ms=min(quiet for _, quiet in samples),
    )
