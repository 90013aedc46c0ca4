"""The plays: who is there, and how their jobs may end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handlers.jobs.lifecycle import control
from handlers.jobs.words.job import Lane
from tests.simulation.timing import (
    TO_BE_MISSED,
    TO_BE_PROMOTED,
    TO_BE_SENT,
    TO_BE_TAKEN,
    TO_EXPIRE,
)

from .stage import RECORDS, Play, Stage

PLAYS: Final[dict[str, Play]] = {}


def play(
    *ends: str, beats: int = 0, ids: tuple[str, ...] = tuple(RECORDS), slots: int = 50
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    def add(people: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = people.__name__.replace("_", " ")
        PLAYS[name] = Play(name, people, frozenset({"SUCCEEDED", *ends}), beats, ids, slots)
        return people

    return add


# --- workers ----------------------------------------------------------------------------------


@play(beats=1)
def two_workers(stage: Stage) -> None:
    """A message is delivered twice; time passes, so that the second worker may resume."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.worker("two", Lane.BULK)
    stage.clock(TO_EXPIRE)


@play()
def a_promotion(stage: Stage) -> None:
    """A function promotes its job, and its own message comes back."""
    stage.job(Lane.SMALL)
    stage.worker("function", Lane.SMALL, function=True)
    stage.worker("bulk", Lane.BULK)
    stage.worker("other function", Lane.SMALL, function=True)
    stage.clock(TO_BE_PROMOTED, TO_EXPIRE)


@play(ids=("r0",))
def a_stop(stage: Stage) -> None:
    """A worker is asked to end, gives its attempt back, and its message is received again."""
    stage.job(Lane.SMALL)
    stage.worker("one", Lane.SMALL)
    stage.stops("one")
    stage.worker("two", Lane.SMALL)


@play(beats=1)
def a_late_beat(stage: Stage) -> None:
    """A worker gives its attempt back while a beat of it is on its way."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.stops("one")


# --- recovery ---------------------------------------------------------------------------------


@play()
def a_recovery_run(stage: Stage) -> None:
    """Recovery sends what seems lost, while the worker comes back."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.recovery("recovery")
    stage.worker("two", Lane.BULK)
    stage.clock(TO_BE_TAKEN)


@play()
def two_recovery_runs(stage: Stage) -> None:
    """Two runs meet the same job, whose worker is gone."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.recovery("recovery")
    stage.recovery("other recovery")
    stage.clock(TO_BE_TAKEN)


@play()
def a_lost_message(stage: Stage) -> None:
    """Two runs meet the same job, whose message seems lost."""
    stage.job(Lane.BULK)
    stage.passes(TO_BE_MISSED)
    stage.recovery("recovery")
    stage.recovery("other recovery")


@play(ids=("r0",))
def an_unsent_message(stage: Stage) -> None:
    """Two runs meet the dispatch row of one job."""
    stage.unsent()
    stage.passes(TO_BE_SENT)
    stage.recovery("recovery")
    stage.recovery("other recovery")


# --- clients ----------------------------------------------------------------------------------


@play("FAILED")
def two_creates(stage: Stage) -> None:
    """Two requests for one subject, and workers for what they make."""
    stage.creates("client")
    stage.creates("other client")
    stage.worker("one", Lane.SMALL)
    stage.worker("two", Lane.SMALL)


@play(ids=("r0",))
def a_create(stage: Stage) -> None:
    """A job may have run to its end before its client knows that it was created."""
    stage.creates("client")
    stage.recovery("recovery", after=TO_BE_SENT)
    stage.worker("one", Lane.SMALL)


@play(ids=("r0",))
def a_repeated_request(stage: Stage) -> None:
    """Its job may have run to its end before the second try."""
    stage.creates("client", key="k")
    stage.creates("second try", key="k")
    stage.worker("one", Lane.SMALL)


@play("CANCELLED", ids=("r0",), slots=1)
def a_held_job(stage: Stage) -> None:
    """A job is held until another one of its tenant gives its slot back, and perhaps cancelled."""
    stage.job(Lane.SMALL)
    stage.worker("one", Lane.SMALL)
    stage.creates("client", subject="u")
    stage.asks("other client", control.cancel)


@play("CANCELLED")
def a_cancel(stage: Stage) -> None:
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.asks("client", control.cancel)
    stage.worker("two", Lane.BULK)
    stage.clock(TO_EXPIRE)


@play("CANCELLED", "PAUSED")
def a_pause(stage: Stage) -> None:
    """One client pauses a job whose worker is dead, and another one cancels it."""
    stage.job(Lane.BULK)
    stage.dies_at_work("before", Lane.BULK)
    stage.passes(TO_EXPIRE)
    stage.asks("client", control.pause)
    stage.asks("other client", control.cancel)
    stage.worker("one", Lane.BULK)


@play("FAILED")
def a_takeover(stage: Stage) -> None:
    """Another job takes the subject of a worker that stands still, or is slow."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.creates("client")
    stage.worker("two", Lane.BULK)
    stage.clock(TO_EXPIRE, TO_BE_TAKEN)


@play("FAILED")
def a_dead_holder(stage: Stage) -> None:
    """Another job takes the subject of a dead worker, whose job comes back."""
    stage.job(Lane.BULK)
    stage.dies_at_work("before", Lane.BULK)
    stage.passes(TO_BE_TAKEN)
    stage.creates("client")
    stage.worker("one", Lane.BULK)


# --- records ----------------------------------------------------------------------------------


@play()
def another_program(stage: Stage) -> None:
    """It writes the record that a chunk is about to change."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.writes("another program", "r0")
    stage.worker("two", Lane.BULK)


@play(ids=("r0", "r1", "r0"))
def an_id_twice(stage: Stage) -> None:
    """The second chunk with it is planned before the first one has changed its record."""
    stage.job(Lane.BULK)
    stage.worker("one", Lane.BULK)
    stage.worker("two", Lane.BULK)
