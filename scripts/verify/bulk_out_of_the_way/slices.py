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
from collections.abc import Iterator, Mapping, Sequence
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
EACH: Final = 8000
"""Records of a job whose tenant's share is looked at; each takes 10 ms at the least."""
LONG_EACH: Final = 3000
LONG_JOBS: Final = 3
LATER: Final = 10
"""How many times later these jobs start without slices, at the least."""
WITHIN: Final = 2
"""Slices, of the job whose wait is looked at."""
ROUNDS: Final = 25
"""Slices of each tenant, if all get the same, that shares are counted over; ten are promised. The
turns that the end of the window cuts are one for each slot."""
CONTROL_ROUNDS: Final = 10
FIRST: Final = 2
"""Slices of each slot that come before those that count: at first nobody has used anything."""
MANY: Final = "many"
ONE: Final = "one"
OTHER: Final = "other"
MANY_JOBS: Final = 10
OFF: Final = 0.25
WEIGHTS: Final[Sequence[Mapping[str, int]]] = (
    {MANY: 1, ONE: 1, OTHER: 1},
    {MANY: 3, ONE: 1},
)
"""Of the tenants in the line. With two slots and two tenants, no slot could go to another job."""
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
        for number, weights in enumerate(WEIGHTS):
            tenants = {who: f"{who}-{number}" for who in weights}
            for who, weight in weights.items():
                set_weight(here.world, here.tenant(tenants[who]), weight)
            yield from shared(_shares(here, tenants, ROUNDS), weights)
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
        worked = _shares(here, {MANY: MANY, ONE: ONE}, CONTROL_ROUNDS)
        yield from (each.contrary() for each in shared(worked, {MANY: 1, ONE: 1}))
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


def shared(worked: Mapping[str, int], weights: Mapping[str, int]) -> Iterator[Expectation]:
    """worked: slot time (ms) of the tenant with many jobs, and of those with one."""
    beside = f", of {len(worked)} tenants" if len(worked) > 2 else ""  # noqa: PLR2004
    for who in [who for who in worked if who != MANY]:
        ratio = worked[MANY] / max(worked[who], 1)
        owed = weights[MANY] / weights[who]
        yield Expectation.of(
            f"part 2: slot time of a tenant with {MANY_JOBS} jobs against {who} with one, weights "
            f"{weights[MANY]} and {weights[who]}{beside}",
            expected=f"{owed * (1 - OFF):.2f} to {owed * (1 + OFF):.2f}",
            saw=f"{ratio:.2f}: {worked[MANY] / 1000:.1f} against {worked[who] / 1000:.1f} s",
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


def _shares(here: Town, tenants: Mapping[str, str], rounds: int) -> Mapping[str, int]:
    """How long (ms) the jobs of each tenant worked in so many slices of each."""
    jobs: dict[str, list[str]] = {}
    for who, tenant in tenants.items():
        ids = here.load(tenant, EACH)
        count = MANY_JOBS if who == MANY else 1
        jobs[who] = [here.submit(tenant, ids, **ADD_SLOWLY) for _ in range(count)]
    first = FIRST * SLOTS * SLICE_S * 1000
    before = _worked(here, jobs, first)
    window = rounds * len(tenants) * SLICE_S * 1000
    after = _worked(here, jobs, sum(before.values()) + window)
    return {who: after[who] - before[who] for who in tenants}


def _worked(here: Town, jobs: Mapping[str, Sequence[str]], ms: int) -> Mapping[str, int]:
    """How long (ms) each tenant's jobs have worked, once that is so many ms together, or as soon as
    a job has ended: from then on not every slot is wanted."""

    def enough(rows: Sequence[JobRow]) -> bool:
        ended = any(row.state.terminal for row in rows)
        return ended or sum(row.worked_ms for row in rows) >= ms

    rows = here.until("bulk jobs work", [id_ for ids in jobs.values() for id_ in ids], enough)
    by_id = {row.id: row.worked_ms for row in rows}
    return {who: sum(by_id[id_] for id_ in ids) for who, ids in jobs.items()}
