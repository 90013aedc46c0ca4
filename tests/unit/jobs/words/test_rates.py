"""The units of rate limits."""

from __future__ import annotations

from handlers.jobs.words.rates import MAX_RATE, RateLimit, Unit


def test_a_limit_of_each_unit_is_its_own() -> None:
    made = {RateLimit("tenant#t", unit, MAX_RATE) for unit in Unit}
    assert len(made) == len(Unit) == 2
