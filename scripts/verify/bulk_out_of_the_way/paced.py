"""Part 1: with every bulk slot busy, small jobs wait little longer than alone. The control: no
governor.

What is measured: the dwell of small jobs that come one after another, alone and then beside bulk
work, on one stack; and the records that the bulk work changes meanwhile. Two kinds of bulk work:
one that waits for the database only, and one whose operation is slow, so that the database has time
for everybody. Only ratios are judged. Database, workers and functions share the processors here, so
a small job meets bulk work more often than on AWS.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from handlers.jobs.words.pace import PaceSettings
from scripts.load.measures import Dwell
from scripts.local.settings import Chosen
from scripts.verify import slow_operations
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .town import Town

BULK: Final = ("bulk-0", "bulk-1")
SMALL: Final = "small"
SLOTS: Final = 2
EACH: Final = 1500
"""Records of a bulk job."""
JOBS: Final = 20
"""Of each bulk tenant."""
SMALL_JOBS: Final = 40
ITEMS: Final = 10
EVERY_S: Final = 0.25
ADAPT: Final = 40
"""Small jobs that come before those that count: the governor hears of them first."""
TIMES: Final = 3
TIMES_P95: Final = 5
"""How many times longer than alone small jobs may wait beside bulk work, p50 and p95."""
LESS: Final = 2
"""How many times longer small jobs wait without the governor, at the least."""
KEPT: Final = PaceSettings().floor_percent / 100
"""Of the bulk throughput without a governor, at the least. A transaction occupies this database as
long as it has records, so little room is left between small chunks for small jobs and large ones
for throughput."""
AIM_KEPT: Final = 0.7
KEPT_SLOW: Final = 0.97
"""The same where the operation is slow and not the database."""
FIELDS: Final = {f"field-{number}": "some text of a record" for number in range(10)}
"""Of a bulk tenant's records: a transaction over many of them takes the database a while."""
SLOW: Final[Mapping[str, Any]] = {"operation": "slow_number", "params": {"add": 1}}


@dataclass(frozen=True)
class Measured:
    idle: Dwell
    loaded: Dwell
    rate: float
    """Records a second of bulk work that waits for the database."""
    slow_rate: float
    """Of bulk work whose operation is slow."""

    @property
    def p50(self) -> float:
        return self.loaded.p50 / max(self.idle.p50, 1)

    @property
    def p95(self) -> float:
        return self.loaded.p95 / max(self.idle.p95, 1)


def settings(*, on: bool) -> Chosen:
    return {
        "bulk_lane": {"slots": SLOTS},
        "limits": {"tenant_slots_bulk": 1},
        "pace": {"on": on},
        "operations": str(Path(slow_operations.__file__).parent),
    }


def run(bench: Bench) -> Iterator[Seen]:
    governed, free = _measure(bench, on=True), _measure(bench, on=False)
    yield from beside_bulk(governed)
    yield Expectation.of(
        "part 1: small p50 beside bulk work, without a governor against with it",
        expected=f"at least {LESS} x",
        saw=f"{free.p50 / governed.p50:.1f} x: {free.p50:.1f} against {governed.p50:.1f} x idle",
        ok=free.p50 >= LESS * governed.p50,
    )
    yield kept("that waits for the database", governed.rate, free.rate, KEPT, aim=AIM_KEPT)
    yield kept("whose operation is slow", governed.slow_rate, free.slow_rate, KEPT_SLOW)
    yield _told("with the governor", governed)


def control(bench: Bench) -> Iterator[Seen]:
    """Without a governor: the harm, against idle lanes of the same stack."""
    free = _measure(bench, on=False)
    median, _ = beside_bulk(free)
    yield median.contrary()
    yield _told("without a governor", free)


def beside_bulk(seen: Measured) -> Iterator[Expectation]:
    for name, times, most, loaded, idle in (
        ("p50", seen.p50, TIMES, seen.loaded.p50, seen.idle.p50),
        ("p95", seen.p95, TIMES_P95, seen.loaded.p95, seen.idle.p95),
    ):
        yield Expectation.of(
            f"part 1: {name} dwell of small jobs beside bulk work, against idle lanes",
            expected=f"at most {most} x",
            saw=f"{times:.1f} x: {loaded} against {idle} ms",
            ok=times <= most,
        )


def kept(
    of_work: str, governed: float, free: float, least: float, *, aim: float | None = None
) -> Expectation:
    share = governed / max(free, 0.001)
    return Expectation.of(
        f"part 1: throughput of bulk work {of_work}, with the governor against without",
        expected=f"at least {least}" + (f" (aim: {aim})" if aim else ""),
        saw=f"{share:.2f}: {governed:.0f} and {free:.0f} records/s",
        ok=share >= least,
    )


def _told(how: str, seen: Measured) -> Information:
    return Information(
        what=f"part 1: dwell of small jobs, {how}",
        beside=f"idle: p50 {seen.idle.p50}, p95 {seen.idle.p95}, max {seen.idle.max} ms",
        saw=f"p50 {seen.loaded.p50}, p95 {seen.loaded.p95}, max {seen.loaded.max} ms",
    )


def _measure(bench: Bench, *, on: bool) -> Measured:
    name = "paced" if on else "unpaced"
    with bench.stack(name, settings=settings(on=on), records=False) as stack:
        town = Town(stack)
        ids = {tenant: town.load(tenant, EACH, **FIELDS) for tenant in BULK}
        few = town.load(SMALL, ITEMS * max(SMALL_JOBS, ADAPT))
        _come(town, few, ADAPT)  # connections, imports, and what quiet times are
        idle = _come(town, few, SMALL_JOBS)
        _, slow_rate = _beside(town, partial(town.submit, **SLOW), ids, few)
        loaded, rate = _beside(town, town.submit, ids, few)
    return Measured(idle, loaded, rate, slow_rate)


def _beside(
    town: Town, submit: Any, ids: Mapping[str, list[str]], few: list[str]
) -> tuple[Dwell, float]:
    """The dwell of small jobs beside bulk jobs, and the records a second of the bulk jobs."""
    bulk = [submit(tenant, ids[tenant]) for _ in range(JOBS) for tenant in BULK]
    town.running(bulk, SLOTS)
    _come(town, few, ADAPT)
    began, before = time.monotonic(), sum(row.position for row in town.rows(bulk))
    dwell = _come(town, few, SMALL_JOBS)
    done = sum(row.position for row in town.rows(bulk)) - before
    rate = done / (time.monotonic() - began)
    town.clear()
    return dwell, rate


def _come(town: Town, ids: list[str], count: int) -> Dwell:
    """Small jobs, one after another, whatever became of those before."""
    start = time.monotonic()
    made = []
    for number in range(count):
        time.sleep(max(0.0, start + number * EVERY_S - time.monotonic()))
        made.append(town.submit(SMALL, ids[number * ITEMS : (number + 1) * ITEMS]))
    rows = town.ended(made)
    return Dwell.of(row.dwell_ms for row in rows if row.dwell_ms is not None)
