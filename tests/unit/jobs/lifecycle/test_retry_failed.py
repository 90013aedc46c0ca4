"""Trying the failed records of an ended job again, by a job of their own."""

from __future__ import annotations

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.retry_failed import retry_failed
from handlers.jobs.lifecycle.submit import TooMany
from handlers.jobs.words.job import Job
from handlers.jobs.words.states import State
from tests.support.jobs import TENANT, now, run_next, use_up
from tests.support.quotas import FEW, counts, made, world_of


def test_retrying_a_failed_job_needs_room() -> None:
    world = world_of(FEW)
    failed = made(world, "f", field_="none", tolerated=0)
    run_next(world)
    other = made(world, "g")
    use_up(world, other)
    run_next(world)
    assert now(world, failed).state is now(world, other).state is State.FAILED
    for n in range(3):
        made(world, f"s{n}")
    before = world.store.snapshot()
    assert control.retry(world, TENANT, other.id) == TooMany(3)
    assert retry_failed(world, TENANT, failed.id, lambda: False) == TooMany(3)
    assert world.store.snapshot() == before
    assert not world.payloads.names()
    run_next(world)
    again = control.retry(world, TENANT, other.id)
    assert isinstance(again, Job)
    assert counts(world)[2] == 3
