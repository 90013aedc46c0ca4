"""How the noisy-tenant scenario judges what it saw."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.load.measures import most_at_once
from scripts.verify.noisy_tenant import (
    Seen,
    all_succeeded,
    held,
    passed_by,
    slots_kept,
)


def row(created: int, admitted: int, started: int, ended: int, **changed: Any) -> JobRow:
    values: dict[str, Any] = {
        "id": "j",
        "tenant": "t",
        "subject": "s",
        "lane": Lane.SMALL,
        "state": State.SUCCEEDED,
        "position": 1,
        "succeeded": 1,
        "failed": 0,
        "skipped": 0,
        "attempt": 1,
        "created_at": created,
        "admitted_at": admitted,
        "started_at": started,
        "finished_at": ended,
    }
    return JobRow.model_validate({**values, **changed})


def waits(*waited: int) -> list[JobRow]:
    return [row(0, 0, ms, ms + 1) for ms in waited]


def test_the_ratio_is_of_p95_and_counts_from_creation() -> None:
    seen = Seen(unloaded=waits(10, 20), loaded=[row(0, 35, 40, 41)], flood=[])
    assert seen.ratio == pytest.approx(2)


def test_spans_that_touch_do_not_overlap() -> None:
    assert most_at_once(iter([(0, 10), (10, 20), (20, 30)])) == 1
    assert most_at_once(iter([(0, 11), (10, 20)])) == 2
    assert most_at_once(iter([(5, 5), (5, 5)])) == 2
    assert most_at_once(iter([])) == 0


def test_more_at_once_than_slots_is_seen() -> None:
    flood = [row(0, 0, 1, 10), row(0, 5, 11, 20)]
    assert not slots_kept(flood, 1).ok
    assert slots_kept(flood, 2).ok
    assert not slots_kept([], 2).ok


def test_a_flood_that_is_never_held_shows_nothing() -> None:
    assert not held([row(0, 0, 1, 2)] * 100).ok
    assert held([row(0, 50, 51, 52)] * 100).ok


def test_a_job_that_changed_nothing_is_seen() -> None:
    bad = row(0, 0, 1, 2, succeeded=0)
    assert not any(each.ok for each in all_succeeded(Seen([bad], [bad], [bad])))


SPEEDS = [0.1, 1, 30]


def beside(slow: float, *, slots: bool) -> Seen:
    """A flood of 20 jobs of 1000 ms, and jobs of others that come after it: with a slot each tenant
    waits for itself, without the others wait for the flood before four workers."""

    def scaled(*times: int) -> JobRow:
        return row(*(round(ms * slow) for ms in times))

    apart = 1000 if slots else 250
    flood = [scaled(0, n * apart if slots else 0, n * apart, n * apart + 1000) for n in range(20)]
    waits = 40 if slots else 20 * apart - 100
    others = [scaled(100, 100, 100 + waits, 400 + waits) for _ in range(9)]
    return Seen(unloaded=others, loaded=others, flood=flood)


@pytest.mark.parametrize("slow", SPEEDS)
def test_others_that_get_past_the_flood_are_as_expected_at_any_speed(slow: float) -> None:
    assert [each for each in passed_by(beside(slow, slots=True)) if not each.ok] == []


@pytest.mark.parametrize("slow", SPEEDS)
def test_others_that_wait_for_the_flood_are_seen_at_any_speed(slow: float) -> None:
    assert [each for each in passed_by(beside(slow, slots=False)) if each.ok] == []
