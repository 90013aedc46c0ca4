"""Rate limits, and the grants that workers share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.storage.rates import (
    AHEAD,
    CATCH_UP,
    Grant,
    lane_limits,
    next_grant,
    read_limits,
    set_lane_limit,
    set_tenant_limit,
    take_grant,
    tenant_key,
    tenant_limits,
)
from handlers.jobs.words.rates import MAX_RATE, RateLimit, Unit
from handlers.jobs.words.writes import Update
from handlers.testing.world import memory_world

LIMIT = RateLimit("tenant#t", Unit.RECORDS, 200)
NOW = 1_000_000


def test_a_grant_is_a_second_s_worth_after_the_last_one() -> None:
    assert next_grant(LIMIT, NOW + 700, NOW) == Grant(200, NOW + 700, NOW + 1700)


def test_an_old_row_gives_no_more_than_a_second_of_lost_time() -> None:
    expected = Grant(200, NOW - CATCH_UP, NOW - CATCH_UP + 1000)
    assert next_grant(LIMIT, None, NOW) == next_grant(LIMIT, 5, NOW) == expected


def test_nobody_stands_in_line_for_longer_than_a_bound() -> None:
    assert next_grant(LIMIT, NOW + AHEAD, NOW) == Grant(200, NOW + AHEAD, NOW + AHEAD + 1000)
    assert next_grant(LIMIT, NOW + AHEAD + 1, NOW) is None


@given(st.lists(st.integers(0, 2500), min_size=20, max_size=60))
def test_whenever_they_ask_workers_get_no_more_than_the_rate(gaps: list[int]) -> None:
    """Of any times of asking: what may be used within a span is its time's worth, and one second
    that was caught up, and the second that a grant is for."""
    until: int | None = None
    now = first = NOW
    granted = 0
    for gap in gaps:
        now += gap
        if (grant := next_grant(LIMIT, until, now)) is not None:
            until = grant.until
            granted += grant.amount
            used_from = max(now, grant.start)
            assert granted <= 200 * (used_from - first + CATCH_UP + 1000) / 1000


def test_two_workers_never_take_one_grant_twice() -> None:
    world = memory_world()
    taken = [take_grant(world, LIMIT) for _ in range(4)]
    starts = [grant.start for grant in taken if grant is not None]
    assert starts == [starts[0] + 1000 * n for n in range(4)]
    assert take_grant(world, LIMIT) is not None
    assert take_grant(world, LIMIT) is None
    other = RateLimit("tenant#u", Unit.RECORDS, 1)
    assert take_grant(world, other) is not None


def test_limits_of_tenant_operation_and_lane_hold_together() -> None:
    world = memory_world()
    assert read_limits(world, tenant="t", operation="o") == ()
    set_tenant_limit(world, "t", Unit.RECORDS, 200)
    set_lane_limit(world, Unit.RECORDS, 1000, None)
    set_lane_limit(world, Unit.WRITE_UNITS, 50, "o")
    assert set(read_limits(world, tenant="t", operation="o")) == {
        RateLimit("tenant#t", Unit.RECORDS, 200),
        RateLimit("lane#bulk", Unit.RECORDS, 1000),
        RateLimit("operation#o", Unit.WRITE_UNITS, 50),
    }
    assert {e.scope for e in read_limits(world, tenant="x", operation="y")} == {"lane#bulk"}
    assert tenant_limits(world, "t") == {Unit.RECORDS: 200}
    assert lane_limits(world) == {Unit.RECORDS: 1000}
    assert lane_limits(world, "o") == {Unit.WRITE_UNITS: 50}
    set_tenant_limit(world, "t", Unit.RECORDS, None)
    assert tenant_limits(world, "t") == {}


@pytest.mark.parametrize("bad", [0, -1, MAX_RATE + 1])
def test_a_rate_that_is_none_is_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"the rate is {bad}"):
        set_tenant_limit(memory_world(), "t", Unit.RECORDS, bad)


def test_a_stored_rate_of_0_is_no_limit() -> None:
    """No command sets one; a job must not wait for a grant of nothing."""
    world = memory_world()
    world.store.transact("zero", [Update(tenant_key("t"), set={Unit.RECORDS.value: 0})])
    assert read_limits(world, tenant="t", operation="o") == ()
