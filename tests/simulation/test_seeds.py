"""Every rule of the design holds in every run, whatever fails where."""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from handlers.jobs.words.states import EDGES, State

from .extras import PLACES
from .scenario import SEEDS, run
from .trace import render

BLOCK: Final = 25
"""Seeds of one test, so that the cores share them."""
OUT_OF_ATTEMPTS: Final = (State.QUEUED, State.FAILED)
"""Has a test of its own."""


FIRST: Final = 400
"""Seeds in which everything that is meant to happen has to."""
FIRST_ONES: Final = pytest.mark.xdist_group("first seeds")
"""In one worker, so that each of them is run once for both tests."""


@cache
def outcome(seed: int) -> tuple[bool, frozenset[str]]:
    """Whether every rule holds, and what happened. A seed is one run, so once is enough."""
    found = run(seed)
    return not found.violations, frozenset(found.seen)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[FIRST_ONES] if first < FIRST else [])
        for first in range(0, SEEDS, BLOCK)
    ],
)
def test_every_rule_holds(first: int) -> None:
    for seed in range(first, first + BLOCK):
        holds, _ = outcome(seed)
        assert holds, (
            f"make simulate SEED={seed}\n{render(run(seed))[-20_000:]}\n"
            f"make simulate SEED={seed} shows the whole of it"
        )


def test_every_rule_holds_when_outages_cost_attempts() -> None:
    """Jobs that are out of attempts before they begin: edge q, which patient jobs hardly take."""
    edges: set[str] = set()
    for seed in range(80, 120):
        found = run(seed, max_retries=0)
        assert not found.violations, (seed, found.violations)
        edges |= found.seen.keys()
    assert f"{State.QUEUED}->{State.FAILED}" in edges


def test_a_seed_is_one_run() -> None:
    for seed in (3, 1999):
        assert render(run(seed)) == render(run(seed))


def test_seeds_differ() -> None:
    assert render(run(1)) != render(run(2))


@FIRST_ONES
def test_c81_what_is_meant_to_happen_does() -> None:
    """A simulation in which nothing goes wrong would prove nothing."""
    wanted = {
        *(f"{a}->{b}" for a, b in EDGES.keys() - {OUT_OF_ATTEMPTS}),
        *("take_over", "dispatch_again", "claim_dispatch", "admit", "ownership_lost"),
        *("attempt_given_back", "retry_later", "handed_over", "redelivery_extended"),
        *("beat_refused", "receipt_expired", "dispatch_left", "outside"),
        *(f"outage of {place}" for place in PLACES),
        *("a key sticks", "batch", "left_to_newer", "made again", "park_effect", "unpark_effect"),
        *("retry_failed_asked", "put_off", "handed over: slice"),
        *("a tenant is stopped", "list_written", "total_known", "damage", "bury"),
        *("redriven: resent", "redriven: dropped"),
        *("a foreign message deleted", "message_not_settled"),
    }
    for seed in range(FIRST):
        wanted -= outcome(seed)[1]
        if not wanted:
            return
    pytest.fail(f"never: {sorted(wanted)}")


def test_a_condition_on_two_attributes_is_shown_with_both() -> None:
    assert "in_flight below name own_limit)" in render(run(7))
