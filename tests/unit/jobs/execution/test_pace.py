"""The rules of pace over series of measurements: ms of commits, dwells of small jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pytest

from handlers.jobs.execution.pace import (
    FULL,
    GENTLE,
    LEAST_CHUNK,
    LONGEST_PAUSE,
    SLACK,
    STEP,
    Baseline,
    CommitTry,
    Trouble,
    chunk_size,
    next_pace,
    pause_ms,
    summary_of,
    trouble_in,
)
from handlers.jobs.words.pace import PacedBy, PaceSettings, SmallDwell

SETTINGS: Final = PaceSettings(target=2, floor_percent=5)
FLOOR: Final = 0.05

# Chunks of 96 records on a database that works on one thing at a time.
ALONE: Final = (64, 66, 63, 65, 71, 64, 66, 65, 63, 67)
BESIDE_ANOTHER: Final = (131, 128, 140, 127, 133, 129, 150, 126, 131, 130)
SLOW_FOR_ALL: Final = (402, 388, 415, 394, 433, 401)


def commits(took: Iterable[int], records: int = 96) -> Sequence[CommitTry]:
    return [CommitTry(at, ms, records) for at, ms in enumerate(took)]


def refused(why: PacedBy, of: int, count: int) -> Sequence[CommitTry]:
    return [CommitTry(n, 65, 96, why if n < count else None) for n in range(of)]


def baseline(took: Iterable[int] = ALONE, records: int = 96) -> Baseline:
    return Baseline().with_window(commits(took, records))


# --- what is trouble ----------------------------------------------------------------------------


def test_a_quiet_series_is_no_trouble() -> None:
    assert trouble_in(commits(ALONE), baseline(), SmallDwell(31, 29), SETTINGS) is None


def test_nothing_measured_is_no_trouble() -> None:
    assert trouble_in((), Baseline(), None, SETTINGS) is None
    assert trouble_in(commits(ALONE), Baseline(), None, SETTINGS) is None


@pytest.mark.parametrize(
    ("ms", "times"),
    [(58, None), (59, 59 / 58), (693, 693 / 58), (29 + SLACK, None)],
)
def test_small_jobs_that_wait_longer_than_the_target_are_trouble(
    ms: int, times: float | None
) -> None:
    found = trouble_in((), Baseline(), SmallDwell(ms, 29), SETTINGS)
    assert found == (None if times is None else Trouble(PacedBy.SMALL_LANE, times))


def test_a_short_wait_stays_unnoticed_whatever_its_ratio() -> None:
    assert trouble_in((), Baseline(), SmallDwell(1 + SLACK, 1), SETTINGS) is None
    assert trouble_in((), Baseline(), SmallDwell(2 + SLACK, 1), SETTINGS) is not None


def test_one_throttled_try_is_trouble() -> None:
    found = trouble_in(refused(PacedBy.THROTTLING, 10, 1), baseline(), None, SETTINGS)
    assert found == Trouble(PacedBy.THROTTLING, 2)


@pytest.mark.parametrize(
    ("count", "of", "why"), [(2, 10, None), (3, 10, PacedBy.CONFLICTS), (1, 2, None)]
)
def test_conflicts_are_trouble_when_they_are_many(count: int, of: int, why: PacedBy | None) -> None:
    found = trouble_in(refused(PacedBy.CONFLICTS, of, count), baseline(), None, SETTINGS)
    assert (found and found.why) is why


def test_commits_that_take_longer_than_the_target_are_trouble() -> None:
    found = trouble_in(commits(SLOW_FOR_ALL), baseline(), None, SETTINGS)
    assert found is not None
    assert found.why is PacedBy.LATENCY
    assert 2 < found.times < 2.1
    # With one other bulk job they take twice as long, which harms nobody.
    assert trouble_in(commits(BESIDE_ANOTHER), baseline(), None, SETTINGS) is None


def test_the_worst_trouble_is_named() -> None:
    found = trouble_in(commits(SLOW_FOR_ALL), baseline(), SmallDwell(693, 29), SETTINGS)
    assert found is not None
    assert found.why is PacedBy.SMALL_LANE


# --- the baseline -------------------------------------------------------------------------------


def test_a_baseline_is_of_quiet_times() -> None:
    learned = baseline().with_window(commits(SLOW_FOR_ALL))
    assert learned.of(96) == 65


def test_a_baseline_of_another_size_is_in_proportion() -> None:
    known = baseline()
    assert known.of(48) == 65
    assert baseline((16, 17, 16), 24).of(96) == 64
    assert Baseline().of(96) is None


def test_a_database_that_is_slower_for_good_becomes_the_new_normal() -> None:
    once = baseline().next_span().with_window(commits(SLOW_FOR_ALL))
    assert once.of(96) == 65
    assert once.next_span().with_window(commits(SLOW_FOR_ALL)).of(96) == 401.5


def test_refused_tries_say_nothing_about_the_time_of_commits() -> None:
    assert Baseline().with_window(refused(PacedBy.THROTTLING, 4, 4)).of(96) is None


# --- the pace -----------------------------------------------------------------------------------


def steps(pace: float, troubles: Iterable[Trouble | None]) -> list[float]:
    seen = []
    for trouble in troubles:
        pace = next_pace(pace, trouble, SETTINGS)
        seen.append(pace)
    return seen


def test_it_backs_off_within_seconds_and_comes_back_slowly() -> None:
    suffering = Trouble(PacedBy.SMALL_LANE, 12)
    down = steps(FULL, [suffering] * 5)
    assert down == sorted(down, reverse=True)
    assert down[2] < GENTLE
    up = steps(down[-1], [None] * 40)
    assert up == sorted(up)
    assert up[9] < 0.5
    assert up[-1] == FULL


def test_a_cut_is_in_proportion_to_the_trouble() -> None:
    little, much = (next_pace(0.8, Trouble(PacedBy.SMALL_LANE, t), SETTINGS) for t in (1.2, 1.8))
    assert 0.8 - STEP > little > much > 0.4


def test_it_never_falls_below_the_floor() -> None:
    for why in PacedBy:
        assert min(steps(FULL, [Trouble(why, 1000)] * 50)) >= FLOOR
    assert steps(FULL, [Trouble(PacedBy.SMALL_LANE, 1000)] * 50)[-1] == FLOOR


def test_slow_commits_alone_make_chunks_small_but_no_pauses() -> None:
    assert steps(FULL, [Trouble(PacedBy.LATENCY, 9)] * 20)[-1] == GENTLE
    assert pause_ms(GENTLE, 100) == 0
    # Nor do they raise a pace that the small lane had lowered.
    assert next_pace(0.1, Trouble(PacedBy.LATENCY, 9), SETTINGS) == 0.1


def test_paces_meet_although_no_worker_knows_of_another() -> None:
    """Two workers see the same trouble; a cut takes more from the faster one, a raise is equal."""
    fast, slow = FULL, FLOOR
    for second in range(120):
        trouble = Trouble(PacedBy.SMALL_LANE, 1.5) if fast + slow > 1 and second % 4 == 0 else None
        fast, slow = (next_pace(pace, trouble, SETTINGS) for pace in (fast, slow))
    assert fast / slow < 1.25


@pytest.mark.parametrize(
    ("pace", "most", "size"),
    [(1, 96, 96), (0.5, 96, 48), (0.25, 96, 24), (0.01, 96, LEAST_CHUNK), (0.01, 3, 3), (1, 1, 1)],
)
def test_chunks_shrink_with_the_pace(pace: float, most: int, size: int) -> None:
    assert chunk_size(pace, most) == size


@pytest.mark.parametrize(("pace", "pause"), [(1, 0), (0.25, 0), (0.125, 20), (0.05, 80)])
def test_below_the_gentle_pace_the_work_is_a_share_of_the_time(pace: float, pause: int) -> None:
    assert pause_ms(pace, 20) == pause


def test_a_pause_is_bounded() -> None:
    assert pause_ms(0.01, 60_000) == LONGEST_PAUSE


# --- the small lane's samples -------------------------------------------------------------------


def test_samples_of_several_processes_are_one() -> None:
    assert summary_of([]) is None
    assert summary_of([(40, 30), (200, 29), (60, 31)]) == SmallDwell(60, 29)
