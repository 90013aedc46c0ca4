"""Judging a run by its jobs' own times. Pure: rows in, numbers out."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from .ledger import JobRow


class Dwell(BaseModel):
    """Milliseconds, over the jobs that started."""

    model_config = ConfigDict(frozen=True)

    p50: int
    p95: int
    max: int

    @classmethod
    def of(cls, values: Iterable[int]) -> Dwell:
        """Raises ValueError when there are none."""
        ordered = sorted(values)
        return cls(p50=percentile(ordered, 50), p95=percentile(ordered, 95), max=ordered[-1])


Number = TypeVar("Number", int, float)


def percentile(ordered: Sequence[Number], percent: int) -> Number:
    """The nearest rank: a value that occurred, and at least ``percent`` % are not above it.
    Raises ValueError when there are none."""
    if not ordered:
        raise ValueError("no values")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Busy(BaseModel):
    """How busy the slots of a lane were between two moments."""

    model_config = ConfigDict(frozen=True)

    slots: int
    window_ms: int
    share_percent: float
    """Of the slots' time in the window that a job was running in them."""
    longest_gap_ms: int
    """The longest time in which fewer jobs ran than there are slots."""
    least_waiting: int
    """The smallest number of jobs that were waiting for a slot at any moment."""


def busy(jobs: Iterable[JobRow], *, slots: int, start: int, end: int) -> Busy:
    """Over the jobs of one lane, from ``start`` to ``end`` (ms). Each ran from its start to its
    end in one slot."""
    rows = list(jobs)
    running = _steps(((row.started_at, row.finished_at) for row in rows), start, end)
    waiting = _steps(((row.created_at, row.started_at) for row in rows), start, end)
    window = end - start
    worked = sum(min(step.count, slots) * step.length for step in running)
    return Busy(
        slots=slots,
        window_ms=window,
        share_percent=round(100 * worked / (slots * window), 2) if window else 0.0,
        longest_gap_ms=_longest(running, slots),
        least_waiting=min(step.count for step in waiting),
    )


@dataclass(frozen=True)
class _Step:
    length: int
    count: int


def _steps(spans: Iterable[tuple[int | None, int | None]], start: int, end: int) -> list[_Step]:
    """How many spans there are at each moment of the window. None at its start: it did not begin;
    at its end: it has not ended."""
    changes: list[tuple[int, int]] = []
    for begins, ends in spans:
        if begins is None:
            continue
        until = end if ends is None else min(ends, end)
        if max(begins, start) < until:
            changes += [(max(begins, start), 1), (until, -1)]
    steps, count, at = [], 0, start
    for moment, change in sorted(changes):
        if moment > at:
            steps.append(_Step(moment - at, count))
            at = moment
        count += change
    if end > at or not steps:
        steps.append(_Step(end - at, count))
    return steps


def _longest(steps: Sequence[_Step], slots: int) -> int:
    longest = current = 0
    for step in steps:
        current = current + step.length if step.count < slots else 0
        longest = max(longest, current)
    return longest


class Overtaking(BaseModel):
    """How jobs of one lane got past the jobs of another that stood in line when they came.

    Of the order of starts alone, whatever time each took.
    """

    model_config = ConfigDict(frozen=True)

    came: int
    """Jobs of the one lane."""
    met_a_line: int
    """Of them: came while at least one job of the other lane stood in line."""
    passed_none: int
    """Of those: started after all of the line."""
    ahead: int
    """Jobs in line, summed over all that came."""
    overtaken: int
    """Of them: started later, or not at all."""
    all_slots: int
    """Of ``came``: those at whose coming every slot of the other lane worked."""

    @property
    def percent(self) -> float:
        return round(100 * self.overtaken / self.ahead, 1) if self.ahead else 0.0


def overtaking(coming: Iterable[JobRow], others: Iterable[JobRow], *, slots: int) -> Overtaking:
    """coming: the jobs of one lane. others: those of the other, which has so many ``slots``."""
    rows, other = list(coming), list(others)
    met = passed_none = ahead = overtaken = all_slots = 0
    for row in rows:
        line = [each for each in other if _in_line(each, row.created_at)]
        passed = sum(_later(each, row) for each in line)
        met += bool(line)
        passed_none += bool(line) and not passed
        ahead += len(line)
        overtaken += passed
        all_slots += sum(_running(each, row.created_at) for each in other) >= slots
    return Overtaking(
        came=len(rows),
        met_a_line=met,
        passed_none=passed_none,
        ahead=ahead,
        overtaken=overtaken,
        all_slots=all_slots,
    )


def _in_line(job: JobRow, at: int) -> bool:
    if job.admitted_at is None or job.admitted_at > at:
        return False
    left = job.finished_at if job.started_at is None else job.started_at
    return left is None or left > at


def _running(job: JobRow, at: int) -> bool:
    if job.started_at is None or job.started_at > at:
        return False
    return job.finished_at is None or job.finished_at > at


def _later(job: JobRow, than: JobRow) -> bool:
    """A job that never started is later than any that did."""
    if than.started_at is None:
        return False
    return job.started_at is None or job.started_at > than.started_at


def most_at_once(spans: Iterator[tuple[int, int]]) -> int:
    """The greatest number of spans that overlap; one may begin as another ends."""
    changes = sorted(
        change for begins, ends in spans for change in ((begins, 1), (max(ends, begins + 1), -1))
    )
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


@dataclass(frozen=True)
class Arrival:
    """A job for the simulated queue."""

    id: str
    at: int
    """ms"""
    duration: int
    """ms"""


def fifo_dwells(arrivals: Iterable[Arrival], slots: int) -> dict[str, int]:
    """How long each job would have waited (ms) in one queue, first come first served, in front of
    ``slots`` equal slots."""
    free = [0] * slots
    dwells = {}
    for job in sorted(arrivals, key=lambda job: (job.at, job.id)):
        start = max(job.at, heapq.heappop(free))
        heapq.heappush(free, start + job.duration)
        dwells[job.id] = start - job.at
    return dwells


def arrivals(jobs: Iterable[JobRow]) -> list[Arrival]:
    """The jobs that ran, with the time each took. Those that did not are left out, in favour of
    the shared queue."""
    return [
        Arrival(row.id, row.created_at, row.finished_at - row.started_at)
        for row in jobs
        if row.started_at is not None and row.finished_at is not None
    ]
