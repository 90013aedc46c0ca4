"""Every way into the queue, and the numbers of the messages."""

from __future__ import annotations

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.enqueue import dispatch_again, queued_job, requeue_job
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.job import Lane
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Index
from handlers.testing.world import SHORT, memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, write


def test_a_resume_that_arrives_twice_does_not_undo_a_later_pause() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    control.pause(world, TENANT, job.id)
    paused = now(world, job)
    resume = requeue_job(world, paused, queued_job(world, paused, held=False), None).transaction
    write(world, resume)
    control.pause(world, TENANT, job.id)
    with pytest.raises(Refused):
        write(world, resume)


def test_a_dispatch_in_between_keeps_its_number_for_itself() -> None:
    """Recovery forgets the row of the number it sent; a second row under that number would go
    with it."""
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    lease = read_lease(world, job)
    assert lease is not None
    write(world, dispatch_again(world, job, lease).transaction)
    promote = release_attempt(world, job, Release(give_back=True, lane=Lane.BULK)).transaction
    with pytest.raises(Refused):
        write(world, promote)
    transition = release_attempt(world, now(world, job), Release(give_back=True, lane=Lane.BULK))
    promote, after = transition.transaction, transition.after
    write(world, promote)
    assert world.store.get(control_table.dispatch_key(job.id, after.dispatches)) is not None
    assert after.dispatches == job.dispatches + 2


@pytest.mark.parametrize(
    ("lost_after", "waits"),
    [(20, [40, 80, 120, 120, 120, 120, 120]), (60, [120, 120]), (200, [200, 200])],
)
def test_a_message_is_missed_later_each_time_but_never_later_than_it_lasts_unheard(
    lost_after: int, waits: list[int]
) -> None:
    """Unheard, a message lasts ten receives of twelve seconds each."""
    assert SHORT.small.unheard_for == 120
    world = memory_world(timing=SHORT.model_copy(update={"lost_after": lost_after}))
    job = new_job(world, fill(world, 3))
    seen = []
    for _ in waits:
        lease = read_lease(world, now(world, job))
        assert lease is not None
        write(world, dispatch_again(world, now(world, job), lease).transaction)
        item = world.store.get(control_table.lease_key(TENANT, job.subject)) or {}
        seen.append(int(str(item[Index.DUE.sk])) - world.runtime.now())
    assert seen == [ms(wait) for wait in waits]
