"""A worker that is asked to stop leaves the job to the next one."""

from __future__ import annotations

import pytest

from handlers.jobs.execution.decisions import KeepMessage
from handlers.jobs.execution.stopping import LoopEnd, StopReason, StopRequested, still_running
from handlers.jobs.lifecycle.submit import Busy
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import OwnershipLost
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete, Update
from handlers.testing.world import memory_world
from tests.support.jobs import begin, create, fill, new_job, now, prices, run_next


def test_a_stop_gives_the_attempt_back_and_the_next_worker_goes_on() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 40)
    job = new_job(world, ids)
    looks = iter([False, False, True])
    decision = run_next(world, Lane.SMALL, stopping=lambda: next(looks))
    assert isinstance(decision, KeepMessage)
    assert decision.seconds == 0
    stopped = now(world, job)
    assert (stopped.state, stopped.position, stopped.attempt) == (State.QUEUED, 20, 0)
    assert isinstance(create(world, ids), Busy)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}


@pytest.mark.parametrize(
    ("change", "stop"),
    [
        ({"position": 1}, None),
        ({"state": "CANCELLING"}, StopReason.CANCELLED),
        ({"state": "PAUSING"}, StopReason.PAUSED),
        ({"state": "QUEUED"}, StopReason.LOST),
        ({"state": "FAILED"}, StopReason.LOST),
        ({"fence": 1}, StopReason.LOST),
        ({"fence": 1, "state": "PAUSING"}, StopReason.LOST),
        ({}, StopReason.LOST),
    ],
)
def test_a_job_is_the_attempt_s_while_it_runs_under_its_fence(
    change: dict[str, int | str], stop: StopReason | None
) -> None:
    """Without a change, the job is gone."""
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    key = control_table.job_key(job.id)
    world.store.transact("change", [Update(key, set=change) if change else Delete(key)])
    if stop is None:
        assert still_running(world, job) == now(world, job)
    elif stop is StopReason.LOST:
        with pytest.raises(OwnershipLost):
            still_running(world, job)
    else:
        with pytest.raises(StopRequested) as raised:
            still_running(world, job)
        assert raised.value.loop_end == LoopEnd(now(world, job), stop)
