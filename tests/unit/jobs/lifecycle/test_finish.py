"""How a job ends once its records are settled, and what its end sets going."""

from __future__ import annotations

import pytest

from handlers.jobs.lifecycle.finish import end_job, ending_of, pause_job
from handlers.jobs.storage.transaction import Rejected
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import begin, fill, new_job, now


@pytest.mark.parametrize(
    ("failed", "tolerated", "state"),
    [
        (0, 0, State.SUCCEEDED),
        (1, 0, State.FAILED),
        (5, 50, State.SUCCEEDED),
        (6, 50, State.FAILED),
        (10, 100, State.SUCCEEDED),
    ],
)
@pytest.mark.parametrize("effects_open", [0, 1])
def test_counts_and_tolerance_decide_and_effects_are_waited_for(
    failed: int, tolerated: int, state: State, effects_open: int
) -> None:
    world = memory_world()
    job = new_job(world, fill(world, 10), tolerated_failure_percent=tolerated)
    ending = ending_of(job.model_copy(update={"failed": failed, "effects_open": effects_open}))
    assert ending.for_good is state
    assert ending.state is (State.SETTLING if effects_open else state)
    assert (ending.reason is EndReason.TOO_MANY_FAILED) is (state is State.FAILED)


@pytest.mark.parametrize("paused", [True, False])
def test_the_next_held_job_has_the_slot_when_the_call_returns(*, paused: bool) -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    ids = fill(world, 1)
    job, held = new_job(world, ids), new_job(world, ids, "other")
    assert now(world, held).held
    after = pause_job(world, job) if paused else end_job(world, job, Ending(State.CANCELLED))
    assert after == now(world, job)
    assert not now(world, held).held


def test_a_job_that_was_moved_meanwhile_is_not_ended_and_not_measured() -> None:
    world = memory_world()
    queued = new_job(world, fill(world, 1))
    running = begin(world, queued)
    with pytest.raises(Rejected):
        end_job(world, queued, Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED))
    assert now(world, queued) == running
    assert world.telemetry.total(Metric.ATTEMPTS_EXHAUSTED) == 0


def test_an_ended_jobs_id_list_is_gone() -> None:
    world = memory_world()
    job = new_job(world, [f"{n:0100}" for n in range(1000)])
    assert job.payload in world.payloads.names()
    assert job.lane is Lane.BULK
    ended = end_job(world, job, Ending(State.CANCELLED))
    assert not ended.cleanup
    assert not world.payloads.names()


@pytest.mark.parametrize(
    ("left", "settles"), [("effects_open", True), ("effects_parked", True), ("effects_done", False)]
)
def test_a_job_settles_while_effects_are_open_or_parked(left: str, *, settles: bool) -> None:
    world = memory_world()
    ending = ending_of(new_job(world, fill(world, 1)).model_copy(update={left: 1}))
    assert (ending.state is State.SETTLING) is settles


@pytest.mark.parametrize("reason", [EndReason.ATTEMPTS_EXHAUSTED, EndReason.BAD_QUERY, None])
def test_a_job_without_attempts_left_is_counted_for_the_alarm(reason: EndReason | None) -> None:
    world = memory_world()
    end_job(world, begin(world, new_job(world, fill(world, 1))), Ending(State.FAILED, reason))
    assert world.telemetry.total(Metric.ATTEMPTS_EXHAUSTED) == (
        1 if reason is EndReason.ATTEMPTS_EXHAUSTED else 0
    )
