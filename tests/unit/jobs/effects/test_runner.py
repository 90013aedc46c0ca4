"""The effects of a job while it runs: told beside its chunks, noted together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.operation import Outcome
from handlers.jobs.words.states import State
from handlers.testing.world import SHORT
from tests.support.sinks import OPERATION, Index, Nothing, a_world, bump, run_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.operation import Fields
    from handlers.jobs.words.writes import Write


def test_done_effects_of_a_long_job_are_noted_together() -> None:
    """And what could not be noted with the others is noted alone, or done again by recovery."""
    index = Index()
    world = a_world(index)
    noted: list[int] = []
    transact = world.store.transact

    def counted(action: str, writes: Sequence[Write]) -> None:
        if action == "effects_done":
            noted.append(len(writes) - 1)
            if len(noted) == 1:
                raise Refused([None] * len(writes))
        transact(action, writes)

    world.store.transact = counted  # type: ignore[method-assign]  # a store that refuses once
    job = run_job(world, 100)
    assert (job.state, job.effects_open, job.effects_done) == (State.SUCCEEDED, 0, 20)
    assert noted == [8, 8, 4]
    assert len(index.keys) == 20


def test_what_is_done_is_noted_before_recovery_would_do_it_again() -> None:
    """However slow the chunks are."""
    index = Index()
    world = a_world(index)

    def apply(fields: Fields, _: Nothing) -> Outcome:
        world.runtime.sleep(4000)
        Recovery(world).run()
        return bump(fields, Nothing())

    operations = {"bump": replace(OPERATION, apply=apply)}
    lively = SHORT.model_copy(update={"small": SHORT.small.model_copy(update={"visibility": 600})})
    world = replace(world, operations=operations, timing=lively)
    job = run_job(world, 50)
    assert (job.state, job.effects_done) == (State.SUCCEEDED, 10)
    assert index.keys == [f"{job.id}:{position}" for position in range(0, 50, 5)]
