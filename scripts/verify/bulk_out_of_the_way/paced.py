"""Part 1: with every bulk slot busy, small jobs wait little longer than alone. The control: no
governor.

What is measured: the dwell of small jobs that come one after another, alone and then beside bulk
work, on one stack; and the records that the bulk work changes meanwhile. Only ratios are judged.
The local AWS serves database, queues and functions from one event loop, so a small job waits for
bulk transactions there more often than it would for DynamoDB's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scripts.load.measures import Dwell
from scripts.local.settings import Chosen
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .town import Town

BULK: Final = ("bulk-0", "bulk-1")
SMALL: Final = "small"
SLOTS: Final = 2
EACH: Final = 3000
"""Records of a bulk job."""
JOBS: Final = 8
"""Of each bulk tenant."""
SMALL_JOBS: Final = 24
ITEMS: Final = 10
EVERY_S: Final = 0.25
ADAPT: Final = 24
"""Small jobs that come before those that count: the governor hears of them first."""
AIM: Final = 3
AIM_P95: Final = 5
LESS: Final = 2
"""How many times longer small jobs wait without the governor, at the least."""
KEPT: Final = 0.3
"""Of the bulk throughput without a governor, at the least; the aim is 0.7."""


@dataclass(frozen=True)
class Measured:
    idle: Dwell
    loaded: Dwell
    bulk_rate: float
    """Records a second."""

    @property
    def p50(self) -> float:
        return self.loaded.p50 / max(self.idle.p50, 1)

    @property
    def p95(self) -> float:
        return self.loaded.p95 / max(self.idle.p95, 1)


def settings(*, on: bool) -> Chosen:
    return {"bulk_lane": {"slots": SLOTS}, "limits": {"tenant_slots_bulk": 1}, "pace": {"on": on}}


def run(bench: Bench) -> Iterator[Seen]:
    governed, free = _both(bench)
    yield Expectation.of(
        "part 1: small p50 beside bulk work, without a governor against with it",
        expected=f"at least {LESS} x",
        saw=f"{free.p50 / governed.p50:.1f} x: {free.p50:.1f} against {governed.p50:.1f} x idle",
        ok=free.p50 >= LESS * governed.p50,
    )
    share = governed.bulk_rate / max(free.bulk_rate, 0.001)
    yield Expectation.of(
        "part 1: bulk throughput with the governor, against without",
        expected=f"at least {KEPT}",
        saw=f"{share:.2f}: {governed.bulk_rate:.0f} and {free.bulk_rate:.0f} records/s",
        ok=share >= KEPT,
    )
    yield from _told("with the governor", governed)


def control(bench: Bench) -> Iterator[Seen]:
    """Without a governor: the harm, against idle lanes of the same stack."""
    free = _measure(bench, on=False)
    yield Expectation.of(
        f"not so here: part 1: small p50 beside bulk work is at most {AIM} x that of idle lanes",
        expected=f"more than {AIM} x",
        saw=f"{free.p50:.1f} x",
        ok=free.p50 > AIM,
    )
    yield from _told("without a governor", free)


def _told(how: str, seen: Measured) -> Iterator[Information]:
    yield Information(
        what=f"part 1: dwell of small jobs beside bulk work, {how}",
        beside=f"aim: p50 {AIM} x, p95 {AIM_P95} x idle ({seen.idle.p50} and {seen.idle.p95} ms)",
        saw=f"p50 {seen.p50:.1f} x, p95 {seen.p95:.1f} x ({seen.loaded.p50}, {seen.loaded.p95} ms)",
    )


def _both(bench: Bench) -> tuple[Measured, Measured]:
    return _measure(bench, on=True), _measure(bench, on=False)


def _measure(bench: Bench, *, on: bool) -> Measured:
    name = "paced" if on else "unpaced"
    with bench.stack(name, settings=settings(on=on), records=False) as stack:
        town = Town(stack)
        ids = {tenant: town.load(tenant, EACH) for tenant in BULK}
        few = town.load(SMALL, ITEMS * max(SMALL_JOBS, ADAPT))
        _come(town, few, ADAPT)  # connections, imports, and what quiet times are
        idle = _come(town, few, SMALL_JOBS)
        bulk = [town.submit(tenant, ids[tenant]) for _ in range(JOBS) for tenant in BULK]
        town.running(bulk, SLOTS)
        _come(town, few, ADAPT)
        began, before = time.monotonic(), sum(row.position for row in town.rows(bulk))
        loaded = _come(town, few, SMALL_JOBS)
        done = sum(row.position for row in town.rows(bulk)) - before
        rate = done / (time.monotonic() - began)
        town.clear()
    return Measured(idle, loaded, rate)


def _come(town: Town, ids: list[str], count: int) -> Dwell:
    """Small jobs, one after another, whatever became of those before."""
    start = time.monotonic()
    made = []
    for number in range(count):
        time.sleep(max(0.0, start + number * EVERY_S - time.monotonic()))
        made.append(town.submit(SMALL, ids[number * ITEMS : (number + 1) * ITEMS]))
    rows = town.ended(made)
    return Dwell.of(row.dwell_ms for row in rows if row.dwell_ms is not None)
