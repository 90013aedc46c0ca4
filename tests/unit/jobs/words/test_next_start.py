"""When a waiting job should start, from how its tenant's jobs started of late."""

from __future__ import annotations

import pytest

from handlers.jobs.words.next_start import LATELY, next_start

NOW = 10 * LATELY
EVERY = 60_000
STARTS = [NOW - 5 * EVERY + n * EVERY for n in range(5)]
"""One a minute, the last a minute ago."""


@pytest.mark.parametrize("ahead", [0, 1, 10])
def test_starts_go_on_as_they_came(ahead: int) -> None:
    assert next_start(NOW, STARTS, ahead) == NOW + ahead * EVERY
    assert next_start(NOW, STARTS[::-1], ahead) == NOW + ahead * EVERY


def test_the_time_since_the_last_start_is_no_whole_interval() -> None:
    last = STARTS[-1]
    assert next_start(last, STARTS, 0) == last + EVERY
    assert next_start(last + EVERY // 2, STARTS, 2) == last + 3 * EVERY


def test_a_lane_that_slows_down_is_expected_to_be_slow() -> None:
    late = next_start(NOW + 5 * EVERY, STARTS, 3)
    assert late is not None
    assert late > NOW + 5 * EVERY


def test_the_next_start_is_never_in_the_past() -> None:
    assert next_start(NOW + 30 * EVERY, STARTS, 0) >= NOW + 30 * EVERY  # type: ignore[operator]


@pytest.mark.parametrize("starts", [[], [NOW], [NOW - LATELY - 1, NOW], [NOW + 1, NOW]])
def test_little_is_not_enough(starts: list[int]) -> None:
    assert next_start(NOW, starts, 0) is None
