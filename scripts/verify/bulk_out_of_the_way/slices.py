"""Part 2: with every slot taken by jobs that last minutes, shorter ones start within two slices,
and the slots' time of tenants follows their weights.

What is measured: who started before whom, the waits in slices, and the records that each tenant's
jobs did while every slot was wanted, which is slot time as all jobs do the same. The control has no
slices: a job keeps its slot until it ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from handlers.jobs.transitions.shares import set_weight
from scripts.load.ledger import JobRow
from scripts.load.measures import Dwell
from scripts.local.settings import Chosen
from scripts.ops.deployment import deployment
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .town import Town

SLOTS: Final = 2
SLICE_S: Final = 2
CHUNK: Final = 5
"""Small, so that a job with few records lasts long and gives way soon."""
LONG: Final = "long"
SHORTER: Final = ("hundred", "thousands")
COUNTS: Final = {"hundred": 101, "thousands": 5000}
EACH: Final = 8000
"""Records of a long job."""
LONG_JOBS: Final = 3
LATER: Final = 10
"""How many times later these jobs start without slices, at the least."""
WITHIN: Final = 2
"""Slices, of the job whose wait is looked at."""
ROUNDS: Final = 20
"""Slices of each slot that the shares are counted over; ten are promised."""
MANY: Final = "many"
ONE: Final = "one"
MANY_JOBS: Final = 10
OFF: Final = 0.25
WEIGHTS: Final = ((1, 1), (3, 1))
LOOK_S: Final = 0.5
DWELL: Final = "bulk-out-of-the-way slices"


def settings(slice_s: float) -> Chosen:
    return {
        "bulk_lane": {"slots": SLOTS},
        "limits": {"chunk_size": CHUNK, "tenant_slots_bulk": MANY_JOBS},
        "timing": {"slice": slice_s},
        "pace": {"on": False},
    }


def run(bench: Bench) -> Iterator[Seen]:
    with bench.stack("slices", settings=settings(SLICE_S), records=False) as stack:
        town = Town(stack)
        waiting, ended = _shorter_behind_long(town)
        bench.dwells[DWELL] = _dwell(waiting)
        yield from started(waiting, ended)
        yield Information(
            what=f"part 2: their waits, in slices of {SLICE_S} s",
            beside=f"aim: {WITHIN} slices",
            saw=", ".join(f"{(row.dwell_ms or 0) / 1000 / SLICE_S:.1f}" for row in waiting),
        )
        town.clear()
        world = deployment(None, stack.name).world
        for number, (many, one) in enumerate(WEIGHTS):
            tenants = {MANY: f"{MANY}-{number}", ONE: f"{ONE}-{number}"}
            set_weight(world, tenants[MANY], many)
            set_weight(world, tenants[ONE], one)
            yield shared(_shares(town, tenants), many, one)
            town.clear()


def control(bench: Bench) -> Iterator[Seen]:
    """A job keeps its slot until it ends."""
    with bench.stack("slices-none", settings=settings(0), records=False) as stack:
        town = Town(stack)
        waiting, ended = _shorter_behind_long(town)
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
        town.clear()
        tenants = {MANY: f"{MANY}-none", ONE: f"{ONE}-none"}
        yield shared(_shares(town, tenants), 1, 1).contrary()
        town.clear()


def started(waiting: Sequence[JobRow], ended: int) -> Iterator[Expectation]:
    """ended: of the long jobs, when the last of the waiting ones had started."""
    counts = " and ".join(map(str, COUNTS.values()))
    yield Expectation.of(
        f"part 2: long jobs that ended before jobs of {counts} records behind them had started",
        expected=0,
        saw=ended,
        ok=ended == 0 and all(row.started_at for row in waiting),
    )


def shared(done: tuple[int, int], many: int, one: int) -> Expectation:
    ratio = done[0] / max(done[1], 1)
    owed = many / one
    return Expectation.of(
        f"part 2: slot time of a tenant with {MANY_JOBS} jobs against one with one, weights "
        f"{many} and {one}",
        expected=f"{owed * (1 - OFF):.2f} to {owed * (1 + OFF):.2f}",
        saw=f"{ratio:.2f}: {done[0]} against {done[1]} records",
        ok=owed * (1 - OFF) <= ratio <= owed * (1 + OFF),
    )


def _shorter_behind_long(town: Town) -> tuple[list[JobRow], int]:
    """The shorter jobs once all have started, and how many long ones had ended by then."""
    ids = town.load(LONG, EACH)
    few = {tenant: town.load(tenant, COUNTS[tenant]) for tenant in SHORTER}
    long = [town.submit(LONG, ids) for _ in range(LONG_JOBS)]
    town.running(long, SLOTS)
    time.sleep(SLICE_S)
    waiting = [town.submit(tenant, few[tenant]) for tenant in SHORTER]
    town.until("the shorter jobs start", lambda rows: all(rows[id_].started_at for id_ in waiting))
    rows = town.rows(waiting)
    last = max(row.started_at or 0 for row in rows)
    ended = sum(row.finished_at is not None and row.finished_at < last for row in town.rows(long))
    return rows, ended


def _dwell(rows: Sequence[JobRow]) -> Dwell:
    return Dwell.of(row.dwell_ms for row in rows if row.dwell_ms is not None)


def _shares(town: Town, tenants: dict[str, str]) -> tuple[int, int]:
    """Records that the jobs of both tenants did in ten rounds of a full lane."""
    ids = {who: town.load(tenant, EACH) for who, tenant in tenants.items()}
    many = [town.submit(tenants[MANY], ids[MANY]) for _ in range(MANY_JOBS)]
    one = [town.submit(tenants[ONE], ids[ONE])]
    town.running([*many, *one], SLOTS)
    time.sleep(2 * SLICE_S)  # nobody has used anything before the first slices end

    def done(of: Sequence[str]) -> int:
        return sum(row.position for row in town.rows(of))

    before = done(many), done(one)
    after, began = before, time.monotonic()
    while time.monotonic() - began < ROUNDS * SLICE_S:
        time.sleep(LOOK_S)
        if any(row.state.terminal for row in town.rows([*many, *one])):
            break
        after = done(many), done(one)
    return after[0] - before[0], after[1] - before[1]
