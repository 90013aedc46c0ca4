"""What is said of a run is computed rightly from its jobs' times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.load.measures import (
    Arrival,
    Dwell,
    arrivals,
    busy,
    fifo_dwells,
    overtaking,
    percentile,
)


def row(number: int, created: int, started: int | None, finished: int | None) -> JobRow:
    return JobRow(
        id=f"j{number}",
        tenant="t",
        subject=f"s{number}",
        lane=Lane.BULK,
        state=State.SUCCEEDED if finished is not None else State.RUNNING,
        total=1,
        position=1,
        succeeded=1,
        failed=0,
        skipped=0,
        attempt=1,
        created_at=created,
        admitted_at=created,
        started_at=started,
        finished_at=finished,
    )


@pytest.mark.parametrize(
    ("percent", "value"), [(1, 1), (50, 50), (95, 95), (99, 99), (100, 100), (0, 1)]
)
def test_a_percentile_is_a_value_that_occurred(percent: int, value: int) -> None:
    assert percentile(range(1, 101), percent) == value


def test_of_few_values_the_high_percentile_is_the_largest() -> None:
    assert Dwell.of([30, 10, 20]) == Dwell(p50=20, p95=30, max=30)
    with pytest.raises(ValueError, match="no values"):
        Dwell.of([])


def test_slots_that_work_all_the_time_are_busy() -> None:
    jobs = [row(1, 0, 0, 500), row(2, 0, 500, None), row(3, 0, 0, 1000), row(4, 0, None, None)]
    seen = busy(jobs, slots=2, start=100, end=900)
    assert (seen.share_percent, seen.longest_gap_ms, seen.least_waiting) == (100, 0, 1)
    assert seen.window_ms == 800


def test_one_slot_free_for_a_while_is_a_gap() -> None:
    jobs = [row(1, 0, 0, 300), row(2, 0, 450, 1000), row(3, 0, 0, 1000)]
    seen = busy(jobs, slots=2, start=0, end=1000)
    assert seen.longest_gap_ms == 150
    assert seen.share_percent == 92.5
    assert seen.least_waiting == 0


def test_two_free_slots_one_after_the_other_are_one_gap() -> None:
    jobs = [row(1, 0, 0, 300), row(2, 0, 400, 1000), row(3, 0, 0, 400), row(4, 0, 500, 1000)]
    assert busy(jobs, slots=2, start=0, end=1000).longest_gap_ms == 200


def test_a_lane_without_jobs_is_one_gap() -> None:
    seen = busy([], slots=2, start=0, end=1000)
    assert (seen.longest_gap_ms, seen.share_percent, seen.least_waiting) == (1000, 0, 0)


def test_free_slots_at_the_edges_of_the_window_count() -> None:
    seen = busy([row(1, 0, 200, 700)], slots=1, start=0, end=1000)
    assert (seen.longest_gap_ms, seen.share_percent) == (300, 50)


def test_more_jobs_than_slots_are_no_more_than_busy() -> None:
    jobs = [row(number, 0, 0, 1000) for number in range(3)]
    assert busy(jobs, slots=2, start=0, end=1000).share_percent == 100


def test_a_small_job_behind_bulk_work_waits_for_it() -> None:
    jobs = [Arrival("a", 0, 100), Arrival("b", 0, 300), Arrival("c", 0, 100), Arrival("s", 10, 1)]
    assert fifo_dwells(jobs, 2) == {"a": 0, "b": 0, "c": 100, "s": 190}
    assert fifo_dwells(jobs, 4) == {"a": 0, "b": 0, "c": 0, "s": 0}


def test_jobs_that_did_not_run_are_left_out_of_the_simulation() -> None:
    jobs = [row(1, 5, 10, 30), row(2, 5, 10, None), row(3, 5, None, None)]
    assert arrivals(jobs) == [Arrival("j1", 5, 20)]


TIMES = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 500)), min_size=1, max_size=30)


@given(TIMES, st.integers(1, 5))
def test_the_simulated_queue_is_one(times: list[tuple[int, int]], slots: int) -> None:
    """Nobody starts before arriving, in order, and never more at once than there are slots."""
    jobs = [Arrival(f"{number:03}", at, duration) for number, (at, duration) in enumerate(times)]
    dwells = fifo_dwells(jobs, slots)
    assert dwells.keys() == {job.id for job in jobs}
    ordered = sorted(jobs, key=lambda job: (job.at, job.id))
    starts = [job.at + dwells[job.id] for job in ordered]
    assert all(wait >= 0 for wait in dwells.values())
    assert starts == sorted(starts)
    for start in starts:
        running = sum(
            begun <= start < begun + job.duration
            for begun, job in zip(starts, ordered, strict=True)
        )
        assert running <= slots


@given(TIMES)
def test_nobody_waits_longer_for_more_slots(times: list[tuple[int, int]]) -> None:
    jobs = [Arrival(f"{number:03}", at, duration) for number, (at, duration) in enumerate(times)]
    few, many = fifo_dwells(jobs, 2), fifo_dwells(jobs, 3)
    assert all(many[id_] <= few[id_] for id_ in few)


def test_jobs_in_line_that_start_later_are_overtaken() -> None:
    line = [row(1, 0, 5, None), row(2, 0, 30, None), row(3, 0, 60, None), row(4, 0, None, None)]
    met = overtaking([row(9, 10, 40, 50)], line, slots=1)
    assert (met.came, met.met_a_line, met.passed_none) == (1, 1, 0)
    assert (met.ahead, met.overtaken, met.percent) == (3, 2, 66.7)
    assert met.all_slots == 1


def test_jobs_that_came_later_or_were_held_stand_in_no_line() -> None:
    held = row(1, 0, 60, None).model_copy(update={"admitted_at": None})
    gone = row(2, 0, None, 5)  # cancelled before
    met = overtaking([row(9, 10, 20, 50)], [held, gone, row(3, 11, 60, None)], slots=1)
    assert (met.met_a_line, met.ahead, met.all_slots, met.percent) == (0, 0, 0, 0)


def test_a_job_that_never_starts_overtakes_none() -> None:
    met = overtaking([row(9, 10, None, None)], [row(1, 0, 30, None)], slots=1)
    assert (met.passed_none, met.ahead, met.overtaken) == (1, 1, 0)
