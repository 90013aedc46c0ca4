"""An attempt that lets go of its job before the end."""

from __future__ import annotations

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.transitions.conditions import DISPATCH
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, run_next


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


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        (Release(give_back=True), False),
        (Release(give_back=True, fresh_message=True), True),
        (Release(give_back=True, lane=Lane.BULK), True),
    ],
)
def test_a_message_is_sent_again_when_this_one_is_not_gone_on_with(
    how: Release, *, sent: bool
) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    transition = release_attempt(world, job, how)
    assert transition.after.dispatches == job.dispatches + sent
    assert (DISPATCH in transition.transaction.writes) is sent


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (Release(give_back=True), None),
        (Release(give_back=False, retry_at=1), Waiting.RETRY),
        (Release(give_back=True, retry_at=1, reason=Waiting.SLICE), Waiting.SLICE),
        (Release(give_back=True, reason=Waiting.SLICE), Waiting.SLICE),
    ],
)
def test_a_job_that_was_let_go_says_why_it_waits(how: Release, reason: Waiting | None) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    assert release_attempt(world, job, how).after.waiting_reason is reason
