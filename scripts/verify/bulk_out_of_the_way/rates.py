"""Part 4: a tenant limited to so many records a second stays within a tenth, on three workers.

Counted from the jobs' own positions over a span of time, which is the unit of the limit itself. The
control sets no limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from handlers.jobs.storage.rates import set_tenant_limit
from handlers.jobs.words.rates import Unit
from scripts.local.settings import Chosen
from scripts.ops.deployment import deployment
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .town import Town

LIMITED: Final = "limited"
OTHER: Final = "other"
MOST: Final = 200
"""Records a second of the limit."""
OF_FREE: Final = 0.5
"""A slow machine gets a lower limit: so much of what the tenant did without one."""
WORKERS: Final = 3
SPAN_S: Final = 60
SETTLE_S: Final = 8
"""Until every slot has read the limit, and what was granted before is used up."""
RECORDS: Final = 4500
JOBS: Final = 3
"""Of the limited tenant, on three workers."""
SETTINGS: Final[Chosen] = {
    "bulk_lane": {"slots": 2},
    "limits": {"tenant_slots_bulk": JOBS},
}


def run(bench: Bench) -> Iterator[Seen]:
    with bench.stack("rates", settings=SETTINGS, workers=WORKERS, records=False) as stack:
        town = Town(stack)
        world = deployment(None, stack.name).world
        free = _rates(town, limit_first=None)
        town.clear()
        rate = limit_for(free[LIMITED])
        set_tenant_limit(world, LIMITED, Unit.RECORDS, rate)
        held = _rates(town, limit_first=SETTLE_S)
        town.clear()
        yield within(held[LIMITED], rate)
        yield Expectation.of(
            "part 4: another tenant's records a second beside it, against no limit",
            expected="at least as many, within a tenth",
            saw=f"{held[OTHER]:.0f} against {free[OTHER]:.0f}",
            ok=held[OTHER] >= 0.9 * free[OTHER],
        )
        yield Information(
            what="part 4: the limited tenant's rate before it had a limit",
            beside=f"limit {rate}",
            saw=f"{free[LIMITED]:.0f} records a second",
        )


def control(bench: Bench) -> Iterator[Seen]:
    """The same jobs without a limit."""
    with bench.stack("rates-none", settings=SETTINGS, workers=WORKERS, records=False) as stack:
        town = Town(stack)
        free = _rates(town, limit_first=None)[LIMITED]
        yield within(free, limit_for(free)).contrary()
        town.clear()


def limit_for(free: float) -> int:
    """free: what the tenant does without a limit (records a second)."""
    return max(1, min(MOST, round(OF_FREE * free)))


def within(seen: float, rate: int) -> Expectation:
    return Expectation.of(
        f"part 4: records a second of a tenant limited to {rate}, on {WORKERS} workers",
        expected=f"{0.9 * rate:.0f} to {1.1 * rate:.0f}",
        saw=f"{seen:.1f} over {SPAN_S} s",
        ok=0.9 * rate <= seen <= 1.1 * rate,
    )


def _rates(town: Town, limit_first: float | None) -> dict[str, float]:
    """Records a second of both tenants while they work side by side."""
    jobs = {LIMITED: JOBS, OTHER: 1}
    ids: dict[str, list[str]] = {}
    for tenant, count in jobs.items():
        records = town.load(tenant, RECORDS * count)
        each = [records[n * RECORDS : (n + 1) * RECORDS] for n in range(count)]
        ids[tenant] = [town.submit(tenant, part) for part in each]
    town.running(ids[LIMITED], JOBS)
    if limit_first is not None:
        time.sleep(limit_first)
    began = time.monotonic()
    after = before = sum(row.position for row in town.rows(ids[LIMITED]))
    taken = 0.0
    while taken < SPAN_S:
        time.sleep(1)
        rows = town.rows(ids[LIMITED])
        if any(row.state.terminal for row in rows):
            break
        after, taken = sum(row.position for row in rows), time.monotonic() - began
    [other] = town.ended(ids[OTHER])
    worked = (other.finished_at or 0) - (other.started_at or 0)
    return {
        LIMITED: (after - before) / max(taken, 0.001),
        OTHER: other.position * 1000 / max(worked, 1),
    }
