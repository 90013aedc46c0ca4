"""The states of a job, and the only edges between them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    SETTLING = "SETTLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


TERMINAL: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
SUBJECT_TAKEN: Final = frozenset(State) - TERMINAL - {State.SETTLING}
"""A job in one of these is its subject's active job."""

# The letters are those of the diagram in docs/protocol.md.
EDGES: Final[dict[tuple[State, State], str]] = {
    (State.QUEUED, State.RUNNING): "a: a worker began an attempt",
    (State.RUNNING, State.RUNNING): "b: a new attempt resumes after the last one's lease expired",
    (State.RUNNING, State.SUCCEEDED): "c: every record is done and no effect is open",
    (State.RUNNING, State.SETTLING): "d: every record is done, effects are still open",
    (State.RUNNING, State.FAILED): "e: it can never succeed, ran out of attempts or was taken over",
    (State.SETTLING, State.SUCCEEDED): "f: the last effect is done",
    (State.SETTLING, State.FAILED): "g: the last effect is done; too many records failed",
    (State.QUEUED, State.CANCELLED): "h: cancelled before a worker had it",
    (State.RUNNING, State.CANCELLING): "i: a client cancels it; takes effect between chunks",
    (State.CANCELLING, State.CANCELLED): "j: the worker stopped, or no worker was running it",
    (State.RUNNING, State.PAUSING): "k: a client pauses it; takes effect between chunks",
    (State.PAUSING, State.PAUSED): "l: the worker stopped, or no worker was running it",
    (State.QUEUED, State.PAUSED): "m: paused before a worker had it",
    (State.PAUSED, State.QUEUED): "n: resumed",
    (State.PAUSED, State.CANCELLED): "o: cancelled while paused",
    (State.RUNNING, State.QUEUED): "p: the attempt let go: retry, hand-over, promotion or stop",
    (State.QUEUED, State.FAILED): "q: unreadable, not understood, superseded or out of attempts",
    (State.FAILED, State.QUEUED): "r: a client retries it",
    (State.PAUSING, State.CANCELLING): "s: a client cancels it while it is being paused",
}


class IllegalTransition(AssertionError):
    """A bug: code tried to move a job along an edge that does not exist."""


def reason_for(before: State, after: State) -> str:
    """The reason of an edge. Raises IllegalTransition for a pair that is not in the table."""
    try:
        return EDGES[before, after]
    except KeyError:
        raise IllegalTransition(f"{before} -> {after}") from None
