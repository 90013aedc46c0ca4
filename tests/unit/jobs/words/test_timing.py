"""The timing relations, each broken alone, and backoff."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.timing import BrokenRelation, LaneTiming, Timing, backoff_ms, ms

SMALL: dict[str, Any] = {"heartbeat": 10, "lease_ttl": 60, "visibility": 360}
BULK: dict[str, Any] = {"heartbeat": 20, "lease_ttl": 90, "visibility": 300}


def timing(
    small: dict[str, Any] | None = None, bulk: dict[str, Any] | None = None, **other: Any
) -> Timing:
    """Good timing, with some of it replaced."""
    rest = {"takeover_grace": 400, "function_timeout": 60, **other}
    return Timing(
        small=LaneTiming(**{**SMALL, **(small or {})}),
        bulk=LaneTiming(**{**BULK, **(bulk or {})}),
        **rest,
    )


def test_good_timing_passes() -> None:
    timing().check()


@pytest.mark.parametrize(
    "on_the_edge",
    [
        timing({"heartbeat": 20}),
        timing({"lease_ttl": 360}, hang_after=360),
        timing(bulk={"max_receive_count": 6, "max_attempts": 5}),
        timing(bulk={"dlq_retention": 61, "queue_retention": 60}),
        timing(takeover_grace=375.001),
        timing(stop_timeout=31, longest_chunk=30),
        timing(small_reserve=59.9),
        timing(hang_after=90, longest_chunk=89),
        timing(hang_after=60.5, bulk={"heartbeat": 20, "lease_ttl": 60}),
    ],
)
def test_what_just_holds_passes(on_the_edge: Timing) -> None:
    on_the_edge.check()


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (
            timing({"heartbeat": 20.5}),
            "small.heartbeat x 3 = 61.5 must be at most small.lease_ttl = 60",
        ),
        (
            timing(bulk={"heartbeat": 31}),
            "bulk.heartbeat x 3 = 93 must be at most bulk.lease_ttl = 90",
        ),
        (
            timing({"lease_ttl": 361}),
            "small.lease_ttl = 361 must be at most small.visibility = 360",
        ),
        (
            timing(bulk={"lease_ttl": 300.5}),
            "bulk.lease_ttl = 300.5 must be at most bulk.visibility = 300",
        ),
        (
            timing({"max_attempts": 4}),
            "small.max_attempts = 4 must be at least the floor = 5",
        ),
        (
            timing({"max_receive_count": 7, "max_attempts": 7}),
            "small.max_receive_count = 7 must be greater than small.max_attempts = 7",
        ),
        (
            timing(bulk={"queue_retention": 1_209_600, "dlq_retention": 1_209_600}),
            "bulk.dlq_retention = 1209600 must be greater than bulk.queue_retention = 1209600",
        ),
        (
            timing(function_timeout=61),
            "small.visibility = 360 must be at least 6 x function_timeout = 366",
        ),
        (
            timing(stop_timeout=30, longest_chunk=30),
            "stop_timeout = 30 must be greater than longest_chunk = 30",
        ),
        (
            timing(hang_after=59.5, bulk={"heartbeat": 19, "lease_ttl": 59}),
            "hang_after = 59.5 must be at least small.lease_ttl = 60",
        ),
        (
            timing(hang_after=89.5),
            "hang_after = 89.5 must be at least bulk.lease_ttl = 90",
        ),
        (
            timing(hang_after=100, longest_chunk=100),
            "hang_after = 100 must be greater than longest_chunk = 100",
        ),
        (
            timing(hang_after=60, bulk={"heartbeat": 20, "lease_ttl": 60}),
            "hang_after = 60 must be greater than function_timeout = 60",
        ),
        (
            timing(small_reserve=60),
            "small_reserve = 60 must be less than function_timeout = 60",
        ),
    ],
)
def test_a_broken_relation_names_both_values(broken: Timing, named: str) -> None:
    with pytest.raises(BrokenRelation) as caught:
        broken.check()

    relation, _, why = str(caught.value).partition(": ")
    assert relation == named
    assert why


@pytest.mark.parametrize(
    ("broken", "grace", "needed"),
    [
        (timing(takeover_grace=375), "375", "small.visibility + heartbeat + clock_skew = 375"),
        (timing(bulk={"visibility": 400}), "400", "bulk.visibility + heartbeat + clock_skew = 425"),
        (timing(clock_skew=30), "400", "small.visibility + heartbeat + clock_skew = 400"),
    ],
)
def test_a_takeover_before_the_redelivery_is_refused(
    broken: Timing, grace: str, needed: str
) -> None:
    with pytest.raises(BrokenRelation) as caught:
        broken.check()

    expected = f"takeover_grace = {grace} must be greater than {needed}: "
    assert str(caught.value).startswith(expected)


def test_each_lane_has_its_own() -> None:
    both = timing()

    assert both.lane("small") is both.small
    assert both.lane("bulk") is both.bulk


@pytest.mark.parametrize(("seconds", "expected"), [(1, 1000), (0.1, 100), (0.0004, 0), (1.5, 1500)])
def test_seconds_to_milliseconds(seconds: float, expected: int) -> None:
    assert ms(seconds) == expected


# --- backoff ----------------------------------------------------------------------------------

TRIES = st.integers(0, 10_000)
CHANCE = st.floats(0, 1, exclude_max=True)
BASE = st.integers(1, 100)
CAP = st.integers(1, 1000)


@given(TRIES, CHANCE, BASE, CAP)
def test_backoff_is_between_half_and_all_of_its_ceiling(
    tries: int, chance: float, base: int, cap: int
) -> None:
    ceiling = min(cap * 1000, base * 1000 * 2**tries)

    assert ceiling // 2 <= backoff_ms(tries, base=base, cap=cap, random=chance) <= ceiling


@given(TRIES, CHANCE, BASE, CAP)
def test_backoff_never_falls_with_more_tries(
    tries: int, chance: float, base: int, cap: int
) -> None:
    one, more = (backoff_ms(n, base=base, cap=cap, random=chance) for n in (tries, tries + 1))

    assert one <= more <= cap * 1000


@given(TRIES, CHANCE, BASE, CAP, st.integers(0, 10**9))
def test_what_was_asked_for_is_honoured_up_to_the_cap(
    tries: int, chance: float, base: int, cap: int, asked: int
) -> None:
    own = backoff_ms(tries, base=base, cap=cap, random=chance)
    waited = backoff_ms(tries, base=base, cap=cap, random=chance, asked_ms=asked)

    assert waited == max(own, min(asked, cap * 1000))


@given(CHANCE)
def test_a_negative_number_of_tries_is_none(chance: float) -> None:
    assert backoff_ms(-1, base=2, cap=300, random=chance) == backoff_ms(
        0, base=2, cap=300, random=chance
    )


def test_chance_spreads_the_waiting() -> None:
    assert backoff_ms(3, base=2, cap=300, random=0) == 8000
    assert backoff_ms(3, base=2, cap=300, random=0.5) == 12_000
