"""How bulk-out-of-the-way judges what it saw."""

from __future__ import annotations

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.verify.bulk_out_of_the_way import PARTS, busy_place, rates, small_at_once


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
    assert rates.within(rate).ok is ok


@pytest.mark.parametrize(("requests", "ok"), [(0, False), (1, True), (12, True), (13, False)])
def test_a_place_is_left_alone(requests: int, ok: bool) -> None:  # noqa: FBT001
    place = busy_place.BusyPlace(refused=[0.5] * requests)
    assert busy_place.left_alone(place).ok is ok


def test_each_part_has_a_control() -> None:
    assert all(callable(part.run) and callable(part.control) for part in PARTS)
