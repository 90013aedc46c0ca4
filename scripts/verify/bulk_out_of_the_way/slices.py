"""Part 2: with every slot taken by jobs that last minutes, shorter ones start within two slices,
and the slots' time of tenants follows their weights.

What is measured: who started before whom, the waits in slices, and the time that each tenant's jobs
worked in the slots while every slot was wanted. That time is the jobs' own count, exact up to their
last checkpoints, over so many slices of it: a slow machine gets as many as a fast one. The
operation is slow, so that jobs last minutes without many records. The control has no slices: a job
keeps its slot until it ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from handlers.jobs.transitions.shares import set_weight
from scripts.load.ledger import JobRow
from scripts.load.measures import Dwell
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .town import ADD_SLOWLY, Town, town

SLOTS: Final = 2
SLICE_S: Final = 2
CHUNK: Final = 5
"""Small, so that a job with few records lasts long and gives way soon."""
LONG: Final = "long"
SHORTER: Final = ("hundred", "thousands")
COUNTS: Final = {"hundred": 101, "thousands": 5000}
EACH: Final = 6000
"""Records of a job whose tenant's share is looked at; each takes 10 ms at the least."""
LONG_EACH: Final = 3000
LONG_JOBS: Final = 3
LATER: Final = 10
"""How many times later these jobs start without slices, at the least."""
WITHIN: Final = 2
"""Slices, of the job whose wait is looked at."""
ROUNDS: Final = 25
"""Slices of each slot that the shares are counted over; ten are promised. The turns that the end of
the window cuts are one for each slot."""
CONTROL_ROUNDS: Final = 10
FIRST: Final = 2
"""Slices of each slot that come before those that count: at first nobody has used anything."""
MANY: Final = "many"
ONE: Final = "one"
MANY_JOBS: Final = 10
OFF: Final = 0.25
WEIGHTS: Final = ((1, 1), (3, 1))
DWELL: Final = "bulk-out-of-the-way slices"


def settings(slice_s: float) -> dict[str, object]:
    """Of the workers."""
    return {
        "bulk_slots": SLOTS,
        "limits_chunk_size": CHUNK,
        "timing_slice": slice_s,
        "pace_on": False,
    }


def run(bench: Bench) -> Iterator[Seen]:
    here = town(bench, "slices")
    with here.working(settings(SLICE_S)):
        waiting, ended = _shorter_behind_long(here)
        bench.dwells[DWELL] = _dwell(waiting)
        yield from started(waiting, ended)
        yield Information(
            what=f"part 2: their waits, in slices of {SLICE_S} s",
            beside=f"aim: {WITHIN} slices",
            saw=", ".join(f"{(row.dwell_ms or 0) / 1000 / SLICE_S:.1f}" for row in waiting),
        )
        here.clear()
        for number, (many, one) in enumerate(WEIGHTS):
            tenants = {MANY: f"{MANY}-{number}", ONE: f"{ONE}-{number}"}
            set_weight(here.world, here.tenant(tenants[MANY]), many)
            set_weight(here.world, here.tenant(tenants[ONE]), one)
            yield shared(_shares(here, tenants, ROUNDS), many, one)
            here.clear()


def control(bench: Bench) -> Iterator[Seen]:
    """A job keeps its slot until it ends."""
    here = town(bench, "slices-none")
    with here.working(settings(0)):
        waiting, ended = _shorter_behind_long(here)
        yield from (each.contrary() for each in started(waiting, ended))
        if (with_slices := bench.dwells.get(DWELL)) is not None:
            without = _dwell(waiting)
            ratio = without.p50 / max(with_slices.p50, 1)
            yield Expectation.of(
                f"part 2: without slices they start at least {LATER} x later",
                expected=f"at least {LATER} x",
                saw=f"{ratio:.1f} x: {without.p50} against {with_slices.p50} ms",
                ok=ratio >= LATER,
            )
        here.clear()
        yield shared(_shares(here, {MANY: MANY, ONE: ONE}, CONTROL_ROUNDS), 1, 1).contrary()
        here.clear()


def started(waiting: Sequence[JobRow], ended: int) -> Iterator[Expectation]:
    """ended: of the long jobs, when the last of the waiting ones had started."""
    counts = " and ".join(map(str, COUNTS.values()))
    yield Expectation.of(
        f"part 2: long jobs that ended before jobs of {counts} records behind them had started",
        expected=0,
        saw=ended,
        ok=ended == 0 and all(row.started_at for row in waiting),
    )


def shared(worked: tuple[int, int], many: int, one: int) -> Expectation:
    """worked: slot time (ms) of the tenant with many jobs, and of the one with one."""
    ratio = worked[0] / max(worked[1], 1)
    owed = many / one
    return Expectation.of(
        f"part 2: slot time of a tenant with {MANY_JOBS} jobs against one with one, weights "
        f"{many} and {one}",
        expected=f"{owed * (1 - OFF):.2f} to {owed * (1 + OFF):.2f}",
        saw=f"{ratio:.2f}: {worked[0] / 1000:.1f} against {worked[1] / 1000:.1f} s",
        ok=owed * (1 - OFF) <= ratio <= owed * (1 + OFF),
    )


def _shorter_behind_long(here: Town) -> tuple[list[JobRow], int]:
    """The shorter jobs once all have started, and how many long ones had ended by then."""
    ids = here.load(LONG, LONG_EACH)
    few = {tenant: here.load(tenant, COUNTS[tenant]) for tenant in SHORTER}
    long = [here.submit(LONG, ids, **ADD_SLOWLY) for _ in range(LONG_JOBS)]
    here.running(long, SLOTS)
    time.sleep(SLICE_S)
    waiting = [here.submit(tenant, few[tenant], **ADD_SLOWLY) for tenant in SHORTER]
    rows = here.until(
        "the shorter jobs start", waiting, lambda rows: all(row.started_at for row in rows)
    )
    last = max(row.started_at or 0 for row in rows)
    ended = sum(row.finished_at is not None and row.finished_at < last for row in here.rows(long))
    return rows, ended


def _dwell(rows: Sequence[JobRow]) -> Dwell:
    return Dwell.of(row.dwell_ms for row in rows if row.dwell_ms is not None)


def _shares(here: Town, tenants: dict[str, str], rounds: int) -> tuple[int, int]:
    """How long (ms) the jobs of both tenants worked in so many slices of each slot."""
    ids = {who: here.load(tenant, EACH) for who, tenant in tenants.items()}
    many = [here.submit(tenants[MANY], ids[MANY], **ADD_SLOWLY) for _ in range(MANY_JOBS)]
    one = [here.submit(tenants[ONE], ids[ONE], **ADD_SLOWLY)]
    first = FIRST * SLOTS * SLICE_S * 1000
    before = _worked(here, many, one, first)
    after = _worked(here, many, one, sum(before) + rounds * SLOTS * SLICE_S * 1000)
    return after[0] - before[0], after[1] - before[1]


def _worked(here: Town, many: Sequence[str], one: Sequence[str], ms: int) -> tuple[int, int]:
    """How long (ms) the jobs of both tenants have worked, once that is so many ms together, or as
    soon as a job has ended: from then on not every slot is wanted."""

    def enough(rows: Sequence[JobRow]) -> bool:
        ended = any(row.state.terminal for row in rows)
        return ended or sum(row.worked_ms for row in rows) >= ms

    rows = here.until("bulk jobs work", [*many, *one], enough)
    worked = [row.worked_ms for row in rows]
    return sum(worked[: len(many)]), sum(worked[len(many) :])
