"""An attempt that lets go of its job before the end."""

from __future__ import annotations

from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, fill, new_job, now, run_next


def test_a_small_job_out_of_time_goes_on_in_the_bulk_lane() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 40)
    job = new_job(world, ids)
    run_next(world, Lane.SMALL, deadline=world.runtime.now() + 100)
    promoted = now(world, job)
    assert (promoted.lane, promoted.state, promoted.attempt) == (Lane.BULK, State.QUEUED, 0)
    assert not world.queues[Lane.SMALL].snapshot()
    run_next(world, Lane.BULK)
    assert now(world, job).state is State.SUCCEEDED
    for lane in Lane:
        assert world.store.get(control_table.slots_key(TENANT, lane)) == {"in_flight": 0}
