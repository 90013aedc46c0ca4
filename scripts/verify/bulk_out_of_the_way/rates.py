"""Part 4: a tenant limited to so many records a second stays within a tenth, on three workers.

Counted from the jobs' own positions over a span of time, which is the unit of the limit itself. The
control is the same without a limit, measured before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from handlers.jobs.storage.rates import set_tenant_limit
from handlers.jobs.words.rates import Unit
from scripts.local.errors import LocalError
from scripts.verify.framework import Bench, Expectation, Information, Seen

from .town import Town, town

LIMITED: Final = "limited"
OTHER: Final = "other"
MOST: Final = 200
"""Records a second of the limit."""
OF_FREE: Final = 0.5
"""A slow machine gets a lower limit: so much of what the tenant did without one."""
WORKERS: Final = 3
SLOTS: Final = 2
"""Of each of them."""
SPAN_S: Final = 60
SETTLE_S: Final = 8
"""Until every slot has read the limit, and what was granted before is used up."""
RECORDS: Final = 4500
JOBS: Final = 3
"""Of the limited tenant, on three workers."""
FREE_S: Final = 20
"""Seconds over which the rate without a limit is taken."""


@dataclass(frozen=True)
class Rates:
    """Records a second."""

    free: Mapping[str, float]
    """Of both tenants, without a limit."""
    limit: int
    held: Mapping[str, float]
    """Of both tenants, the one limited to ``limit``."""


def run(bench: Bench) -> Iterator[Seen]:
    seen = bench.once("rates", lambda: _measure(bench))
    yield within(seen.held[LIMITED], seen.limit)
    yield Expectation.of(
        "part 4: another tenant's records a second beside it, against no limit",
        expected="at least as many, within a tenth",
        saw=f"{seen.held[OTHER]:.0f} against {seen.free[OTHER]:.0f}",
        ok=seen.held[OTHER] >= 0.9 * seen.free[OTHER],
    )
    yield Information(
        what="part 4: the limited tenant's rate before it had a limit",
        beside=f"limit {seen.limit}",
        saw=f"{seen.free[LIMITED]:.0f} records a second",
    )


def control(bench: Bench) -> Iterator[Seen]:
    """The same jobs without a limit."""
    seen = bench.once("rates", lambda: _measure(bench))
    yield beyond(seen.free[LIMITED], seen.limit)


def beyond(seen: float, rate: int) -> Expectation:
    """What the control shows: without the limit it is more, and not less."""
    return Expectation.of(
        f"not so here: part 4: records a second of a tenant limited to {rate}",
        expected=f"more than {1.1 * rate:.0f}",
        saw=f"{seen:.1f}",
        ok=seen > 1.1 * rate,
    )


def _measure(bench: Bench) -> Rates:
    here = town(bench, "rates")
    with here.working({"bulk_slots": SLOTS}, WORKERS):
        free = _rates(here, FREE_S)
        here.clear()
        if not free[LIMITED]:
            raise LocalError("the tenant's jobs did nothing while they had no limit")
        limit = limit_for(free[LIMITED])
        set_tenant_limit(here.world, here.tenant(LIMITED), Unit.RECORDS, limit)
        held = _rates(here, SPAN_S, settle=SETTLE_S)
        here.clear()
    return Rates(free, limit, held)


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


def _rates(here: Town, span: float, *, settle: float = 0) -> dict[str, float]:
    """Records a second of both tenants while they work side by side."""
    jobs = {LIMITED: JOBS, OTHER: 1}
    records = {who: here.load(who, RECORDS * count) for who, count in jobs.items()}
    ids = {
        who: [here.submit(who, records[who][n * RECORDS : (n + 1) * RECORDS]) for n in range(count)]
        for who, count in jobs.items()
    }
    here.running(ids[LIMITED], JOBS)
    time.sleep(settle)
    began = time.monotonic()
    after = before = sum(row.position for row in here.rows(ids[LIMITED]))
    taken = 0.0
    while taken < span:
        time.sleep(1)
        rows = here.rows(ids[LIMITED])
        after, taken = sum(row.position for row in rows), time.monotonic() - began
        if any(row.state.terminal for row in rows):
            break
    [other] = here.rows(ids[OTHER])
    return {
        LIMITED: (after - before) / max(taken, 0.001),
        OTHER: other.position * 1000 / max(other.worked_ms, 1),
    }
