"""Bulk work gets out of the way of small jobs on a store that has a capacity. No clock is read."""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from handlers.jobs.words.pace import PaceSettings

from .capacity import Town

SECONDS: Final = 20
FLOOR: Final = PaceSettings().floor_percent / 100
WORKERS: Final = pytest.mark.parametrize("workers", [1, 3])
pytestmark = pytest.mark.xdist_group("capacity")


@cache
def town(workers: int, *, governed: bool) -> Town:
    return Town(workers, SECONDS, governed=governed).run()


@WORKERS
def test_small_jobs_start_nearly_as_in_quiet_times(workers: int) -> None:
    """And without the governor they wait at least twice as long."""
    governed, without = town(workers, governed=True), town(workers, governed=False)
    assert governed.p50 <= 3
    assert without.p50 >= 2 * governed.p50


@WORKERS
def test_bulk_work_goes_on(workers: int) -> None:
    governed, without = town(workers, governed=True), town(workers, governed=False)
    assert min(each.pace for each in governed.governors) >= FLOOR
    assert sum(governed.done()) >= 0.3 * sum(without.done())


def test_workers_that_know_nothing_of_each_other_carry_equal_shares() -> None:
    done = town(3, governed=True).done()
    assert max(done) <= 1.25 * min(done)
