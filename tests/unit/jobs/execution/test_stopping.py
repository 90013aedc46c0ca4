"""A worker that is asked to stop leaves the job to the next one."""

from __future__ import annotations

from handlers.jobs.execution.decisions import KeepMessage
from handlers.jobs.lifecycle.submit import Busy
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import create, fill, new_job, now, prices, run_next


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
