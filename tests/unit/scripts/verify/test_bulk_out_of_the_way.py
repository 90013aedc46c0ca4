"""How bulk-out-of-the-way judges what it saw."""

from __future__ import annotations

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.load.measures import Dwell
from scripts.verify.bulk_out_of_the_way import (
    PARTS,
    busy_place,
    paced,
    rates,
    slices,
    small_at_once,
)


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
    assert slices.shared((many, one), *weights).ok is ok


@pytest.mark.parametrize(("requests", "ok"), [(0, False), (1, True), (12, True), (13, False)])
def test_a_place_is_left_alone(requests: int, ok: bool) -> None:  # noqa: FBT001
    place = busy_place.BusyPlace(refused=[0.5] * requests)
    assert busy_place.left_alone(place).ok is ok


def test_each_part_has_a_control() -> None:
    assert all(callable(part.run) and callable(part.control) for part in PARTS)


@pytest.mark.parametrize(
    ("p50", "p95", "ok"),
    [(60, 150, [True, True]), (61, 150, [False, True]), (60, 151, [True, False])],
)
def test_a_wait_beside_bulk_work_is_held_against_idle_lanes(
    p50: int, p95: int, ok: list[bool]
) -> None:
    idle, loaded = Dwell(p50=20, p95=30, max=30), Dwell(p50=p50, p95=p95, max=p95)
    seen = paced.Measured(idle, loaded, 1, 1)
    assert [each.ok for each in paced.beside_bulk(seen)] == ok


@pytest.mark.parametrize(("governed", "ok"), [(97, True), (96.9, False), (0, False)])
def test_a_share_of_the_throughput_is_kept(governed: float, ok: bool) -> None:  # noqa: FBT001
    assert paced.kept("of a kind", governed, 100, 0.97).ok is ok
