"""What lane-isolation and the demo judge is order and ratios: any machine's speed passes, one queue
for everything fails."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.drive import Run
from scripts.load.ledger import JobRow
from scripts.load.measures import Arrival, fifo_dwells
from scripts.load.plan import Planned
from scripts.load.truth import Ran
from scripts.verify.framework import Expectation
from scripts.verify.lane_isolation import bulk_was_busy, overtook, waits_less

SLOTS = 2
BULK = [Arrival(f"b{n:02}", n * 50, 2500) for n in range(22)]
"""Submitted first, 50 ms apart."""
SMALL = [Arrival(f"s{n:02}", 2000 + n * 200, 120) for n in range(40)]


def ran(arrival: Arrival, dwell: int, slow: float) -> Ran:
    """slow: how many times longer everything takes."""

    def scaled(ms: int) -> int:
        return round(ms * slow)

    row = JobRow(
        id=arrival.id,
        tenant="t",
        subject=arrival.id,
        lane=Lane.SMALL if arrival.id.startswith("s") else Lane.BULK,
        state=State.SUCCEEDED,
        total=1,
        position=1,
        succeeded=1,
        failed=0,
        skipped=0,
        attempt=1,
        created_at=scaled(arrival.at),
        admitted_at=scaled(arrival.at),
        started_at=scaled(arrival.at + dwell),
        finished_at=scaled(arrival.at + dwell + arrival.duration),
    )
    return Ran(Planned("t", arrival.id, ("1",), Decimal(1)), row)


def run_of(dwells: dict[str, int], slow: float) -> Run:
    bulk, small = (
        tuple(ran(each, dwells[each.id], slow) for each in jobs) for jobs in (BULK, SMALL)
    )
    return Run(bulk=bulk, small=small)


def two_lanes(slow: float = 1) -> Run:
    return run_of(fifo_dwells(BULK, SLOTS) | fifo_dwells(SMALL, SLOTS), slow)


def one_queue(slow: float = 1) -> Run:
    return run_of(fifo_dwells([*BULK, *SMALL], 2 * SLOTS), slow)


def judged(seen: Run, slots: int) -> Sequence[Expectation]:
    return [*overtook(seen, slots), waits_less(seen)]


SPEEDS = [0.05, 1, 40]


@pytest.mark.parametrize("slow", SPEEDS)
def test_two_lanes_hold_at_any_speed(slow: float) -> None:
    seen = two_lanes(slow)
    assert [each for each in bulk_was_busy(seen, SLOTS) if not each.ok] == []
    assert [each for each in judged(seen, SLOTS) if not each.ok] == []


@pytest.mark.parametrize("slow", SPEEDS)
def test_every_claim_fails_where_the_lanes_are_removed_at_any_speed(slow: float) -> None:
    seen = one_queue(slow)
    assert [each.what for each in judged(seen, 2 * SLOTS) if each.ok] == []


def test_small_jobs_that_met_nothing_show_nothing() -> None:
    seen = Run(bulk=two_lanes().bulk[:2], small=two_lanes().small)
    assert not any(each.ok for each in bulk_was_busy(seen, SLOTS))
    assert not any(each.ok for each in overtook(seen, SLOTS))
