"""The states and their edges, against the picture the design draws of them."""

from __future__ import annotations

import itertools

import pytest

from handlers.jobs.words.states import EDGES, TERMINAL, IllegalTransition, State, reason_for

PICTURE = """
QUEUED -> RUNNING -> SUCCEEDED
RUNNING -> FAILED
RUNNING -> SETTLING -> SUCCEEDED
SETTLING -> FAILED
QUEUED -> CANCELLED
RUNNING -> CANCELLING -> CANCELLED
RUNNING -> PAUSING -> PAUSED -> QUEUED
PAUSED -> CANCELLED
QUEUED -> PAUSED
RUNNING -> QUEUED
FAILED -> QUEUED
"""
BEYOND_THE_PICTURE = {
    (State.RUNNING, State.RUNNING),  # the same job resumes after a crash
    (State.PAUSING, State.CANCELLING),  # a cancel does not wait for the pause (C93)
    (State.QUEUED, State.FAILED),  # superseded, unreadable or out of attempts
}


def drawn() -> set[tuple[State, State]]:
    chains = (line.split(" -> ") for line in PICTURE.strip().splitlines())
    return {
        (State(before), State(after))
        for chain in chains
        for before, after in itertools.pairwise(chain)
    }


def test_the_edges_are_those_of_the_picture() -> None:
    assert set(EDGES) - BEYOND_THE_PICTURE == drawn()
    assert set(EDGES) >= BEYOND_THE_PICTURE


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_an_edge_has_a_reason_and_no_other_pair_does(before: State, after: State) -> None:
    if (before, after) in EDGES:
        assert reason_for(before, after) == EDGES[before, after]
    else:
        with pytest.raises(IllegalTransition, match=f"^{before} -> {after}$"):
            reason_for(before, after)


def test_the_letters_are_in_order_and_each_reason_says_something() -> None:
    letters, reasons = zip(*(reason.split(": ", 1) for reason in EDGES.values()), strict=True)

    assert "".join(letters) == "abcdefghijklmnopqrstuvwxyz"[: len(EDGES)]
    assert all(reasons)
    assert len(set(reasons)) >= len(EDGES) - 1  # a cancel and a pause end in the same words


def test_terminal_states_are_left_only_by_a_retry() -> None:
    leaving = {(before, after) for before, after in EDGES if before in TERMINAL}

    assert leaving == {(State.FAILED, State.QUEUED)}


def test_terminal_is_what_a_state_says_of_itself() -> None:
    assert {state for state in State if state.terminal} == TERMINAL


def test_every_state_can_be_reached_and_every_job_can_end() -> None:
    assert reachable(State.QUEUED) == set(State)
    for state in set(State) - TERMINAL:
        assert reachable(state) & TERMINAL


def reachable(start: State) -> set[State]:
    found, grown = {start}, True
    while grown:
        more = found | {after for before, after in EDGES if before in found}
        found, grown = more, more != found
    return found
