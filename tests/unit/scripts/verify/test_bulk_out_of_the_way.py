"""How bulk-out-of-the-way judges what it saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.load.measures import Dwell
from scripts.local.steps import Steps
from scripts.verify.bulk_out_of_the_way import (
    PARTS,
    busy_place,
    paced,
    rates,
    slices,
    slow_bulk,
    small_at_once,
    town,
)
from scripts.verify.bulk_out_of_the_way.load_of import DatabaseLoad, busy_s
from scripts.verify.framework import Bench, Expectation


def row(id_: str, lane: Lane, started_at: int) -> JobRow:
    return JobRow(
        id=id_,
        tenant="t",
        subject=id_,
        lane=lane,
        state=State.SUCCEEDED,
        position=3,
        succeeded=3,
        failed=0,
        skipped=0,
        attempt=1,
        created_at=0,
        admitted_at=0,
        started_at=started_at,
    )


def judged(lane: Lane, started_at: int) -> list[bool]:
    asked = [row(name, lane, started_at) for name in ("query", "file")]
    line = [row(f"b{n}", Lane.BULK, 1000 * n) for n in range(1, 4)]
    seen = {"asked": asked, "line": line}
    return [each.ok for each in small_at_once.claims(seen)]


def test_small_jobs_are_in_their_lane_and_before_the_line() -> None:
    assert judged(Lane.SMALL, 1500) == [True, True]
    assert judged(Lane.BULK, 3001) == [False, False]
    assert judged(Lane.SMALL, 3000) == [True, False]


@pytest.mark.parametrize(
    ("rate", "ok"), [(89.9, False), (90, True), (100, True), (110, True), (110.1, False)]
)
def test_a_rate_holds_within_a_tenth(rate: float, ok: bool) -> None:  # noqa: FBT001
    assert rates.within(rate, 100).ok is ok


@pytest.mark.parametrize(("free", "limit"), [(1000, 200), (300, 150), (0.4, 1)])
def test_a_slow_machine_gets_a_lower_limit(free: float, limit: int) -> None:
    assert rates.limit_for(free) == limit


@pytest.mark.parametrize(("ended", "ok"), [(0, True), (1, False)])
def test_shorter_jobs_start_before_a_long_one_ends(ended: int, ok: bool) -> None:  # noqa: FBT001
    waiting = [row(name, Lane.BULK, 1000) for name in slices.SHORTER]
    assert [each.ok for each in slices.started(waiting, ended)] == [ok]


@pytest.mark.parametrize(
    ("many", "one", "weights", "ok"),
    [
        (100, 100, (1, 1), True),
        (126, 100, (1, 1), False),
        (74, 100, (1, 1), False),
        (300, 100, (3, 1), True),
        (224, 100, (3, 1), False),
        (100, 0, (1, 1), False),
    ],
)
def test_slot_time_follows_the_weights(
    many: int,
    one: int,
    weights: tuple[int, int],
    ok: bool,  # noqa: FBT001
) -> None:
    worked = {slices.MANY: many, slices.ONE: one}
    [seen] = slices.shared(worked, dict(zip(worked, weights, strict=True)))
    assert seen.ok is ok


def test_slot_time_of_each_tenant_with_one_job_is_judged() -> None:
    worked = {slices.MANY: 100, slices.ONE: 99, slices.OTHER: 70}
    seen = list(slices.shared(worked, dict.fromkeys(worked, 1)))
    assert [each.ok for each in seen] == [True, False]
    assert len({each.what for each in seen}) == len(seen)


@pytest.mark.parametrize(("requests", "ok"), [(0, False), (1, True), (12, True), (13, False)])
def test_a_place_is_left_alone(requests: int, ok: bool) -> None:  # noqa: FBT001
    place = busy_place.BusyPlace(refused=[0.5] * requests)
    assert busy_place.left_alone(place).ok is ok


def test_each_part_has_a_control() -> None:
    assert all(callable(part.run) and callable(part.control) for part in PARTS)


def dwell(p50: int, p95: int) -> Dwell:
    return Dwell(p50=p50, p95=p95, max=p95)


ROUND = paced.Round(
    idle=dwell(20, 30),
    governed=paced.Stretch(dwell(50, 140), rate=40, worked=0.9, database=0.6),
    free=paced.Stretch(dwell(130, 300), rate=100, worked=0.9, database=0.9),
)
"""One in which everything holds."""


def governed(p50: int, p95: int) -> paced.Round:
    return replace(ROUND, governed=replace(ROUND.governed, dwell=dwell(p50, p95)))


@pytest.mark.parametrize(
    ("p50", "p95", "ok"),
    [(60, 150, [True, True]), (61, 150, [False, True]), (60, 151, [True, False])],
)
def test_a_wait_beside_bulk_work_is_held_against_idle_lanes(
    p50: int, p95: int, ok: list[bool]
) -> None:
    assert [each.ok for each in paced.beside_bulk([governed(p50, p95)])] == ok


def test_one_round_that_the_machine_spoilt_decides_nothing() -> None:
    spoilt = governed(900, 900)
    assert all(each.ok for each in paced.beside_bulk([ROUND, spoilt, ROUND]))
    assert not any(each.ok for each in paced.beside_bulk([spoilt, ROUND, spoilt]))


@pytest.mark.parametrize(("p50", "ok"), [(100, True), (99, False)])
def test_without_a_governor_small_jobs_wait_twice_as_long(p50: int, ok: bool) -> None:  # noqa: FBT001
    free = replace(ROUND, free=replace(ROUND.free, dwell=dwell(p50, 300)))
    assert paced.less([free]).ok is ok


@pytest.mark.parametrize(("rate", "ok"), [(5, True), (4.9, False)])
def test_bulk_work_beside_small_jobs_goes_on(rate: float, ok: bool) -> None:  # noqa: FBT001
    slow = replace(ROUND, governed=replace(ROUND.governed, rate=rate))
    assert paced.kept([slow]).ok is ok


@pytest.mark.parametrize(
    "idle_work",
    [
        replace(ROUND, governed=replace(ROUND.governed, worked=0.5)),
        replace(ROUND, free=replace(ROUND.free, worked=0.5)),
        replace(ROUND, free=replace(ROUND.free, database=0.5)),
    ],
)
def test_a_round_without_its_premise_does_not_count(idle_work: paced.Round) -> None:
    assert ROUND.shows
    assert not idle_work.shows
    assert paced.enough([ROUND] * paced.ROUNDS).ok
    assert not paced.enough([*[ROUND] * (paced.ROUNDS - 1), idle_work]).ok


def test_where_nobody_knows_how_busy_the_database_is_the_slots_decide() -> None:
    assert replace(ROUND, free=replace(ROUND.free, database=None)).shows


def test_work_is_counted_between_two_looks() -> None:
    before = [row(name, Lane.BULK, 0) for name in ("one", "two")]
    after = [
        before[0].model_copy(update={"position": 13, "worked_ms": 400}),
        before[1].model_copy(update={"position": 23, "worked_ms": 600}),
    ]
    assert paced.done_between(before, after) == (30, 1000)


@pytest.mark.parametrize(("rate", "ok"), [(97, True), (96.9, False), (0, False)])
def test_slow_bulk_work_keeps_its_throughput(rate: float, ok: bool) -> None:  # noqa: FBT001
    windows = [
        slow_bulk.Window(rate, 100, quiet=True, database=0.2),
        slow_bulk.Window(rate, 100, quiet=True, database=0.2),
    ]
    assert slow_bulk.kept(windows).ok is ok


@pytest.mark.parametrize(
    ("quiet", "database", "shows"),
    [(True, 0.5, True), (True, 0.51, False), (False, 0.1, False), (True, None, True)],
)
def test_a_window_counts_where_the_database_has_time(
    quiet: bool,  # noqa: FBT001
    database: float | None,
    shows: bool,  # noqa: FBT001
) -> None:
    assert slow_bulk.Window(97, 100, quiet=quiet, database=database).shows is shows


def test_each_worker_has_its_own_jobs() -> None:
    before = [
        row(name, Lane.BULK, 0).model_copy(update={"worker": worker})
        for name, worker in (("one", "host/1/0/x"), ("two", "host/2/0/y"), ("new", None))
    ]
    changes: list[dict[str, object]] = [
        {"position": 13, "worked_ms": 100},
        {"position": 23, "worked_ms": 400},
        {"position": 8, "worked_ms": 100, "worker": "host/2/1/z"},
    ]
    after = [row.model_copy(update=change) for row, change in zip(before, changes, strict=True)]
    assert slow_bulk.done_by(1, before, after).rate == 100
    assert slow_bulk.done_by(2, before, after).rate == 50
    moved = [after[0].model_copy(update={"worker": "host/2/0/y"}), *after[1:]]
    assert slow_bulk.done_by(1, before, moved).rate == 0
    assert slow_bulk.done_by(2, before, moved).rate == 50


def test_variables_are_those_that_workers_read() -> None:
    assert town.variables({"pace_on": False, "limits_chunk_size": 5}) == {
        "FAIRLANE_PACE_ON": "False",
        "FAIRLANE_LIMITS_CHUNK_SIZE": "5",
    }


def test_of_a_process_that_does_not_exist_nothing_is_known() -> None:
    assert busy_s(0) is None
    assert DatabaseLoad(pid=0, began=0, busy=None).share() is None


def a_bench(name: str, measured: object) -> Bench:
    bench = Bench(Steps(quiet=True))
    bench.once(name, lambda: measured)
    return bench


@pytest.mark.parametrize(("p50", "ok"), [(61, True), (60, False)])
def test_the_control_of_part_1_shows_the_harm(p50: int, ok: bool) -> None:  # noqa: FBT001
    rounds = [replace(ROUND, free=replace(ROUND.free, dwell=dwell(p50, 300)))] * paced.ROUNDS
    seen = list(paced.control(a_bench("paced", rounds)))
    assert all(each.ok for each in seen if isinstance(each, Expectation)) is ok


def test_without_rounds_that_show_something_part_1_does_not_hold() -> None:
    idle_work = replace(ROUND, free=replace(ROUND.free, worked=0.1))
    [only] = paced.control(a_bench("paced", [idle_work] * paced.MOST_ROUNDS))
    assert isinstance(only, Expectation)
    assert not only.ok


def test_without_quiet_windows_slow_bulk_work_shows_nothing() -> None:
    windows = [slow_bulk.Window(100, 100, quiet=False, database=0.2)] * slow_bulk.MOST_WINDOWS
    seen = slow_bulk.run(a_bench("slow bulk", windows))
    assert [each.ok for each in seen if isinstance(each, Expectation)] == [False]


@pytest.mark.parametrize(("free", "ok"), [(200, True), (105, False), (0, False)])
def test_the_control_of_part_4_has_no_limit(free: float, ok: bool) -> None:  # noqa: FBT001
    both = {rates.LIMITED: free, rates.OTHER: 50.0}
    seen = rates.Rates(both, 100, {rates.LIMITED: 100, rates.OTHER: 50.0})
    [claim] = rates.control(a_bench("rates", seen))
    assert isinstance(claim, Expectation)
    assert claim.ok is ok


def test_a_run_and_its_control_judge_the_same_rounds() -> None:
    bench = a_bench("paced", [ROUND])
    assert bench.once("paced", list) == [ROUND]
