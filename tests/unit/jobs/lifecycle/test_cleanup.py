"""What an ended job leaves behind is removed, and nothing of its successor."""

from __future__ import annotations

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.cleanup import release_if_held
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Job
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now


def test_the_clean_up_of_a_failed_job_does_not_free_the_subject_of_its_retry() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    end_job(world, job, Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED))
    failed = now(world, job)
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    release_if_held(world, failed)
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.job_id == job.id
