"""The job of a request and the retry of a job: each exists once."""

from __future__ import annotations

from dataclasses import replace

from handlers.jobs.storage import control_table
from handlers.jobs.transitions.idempotency import (
    REMEMBERED,
    REQUEST,
    RETRIED,
    uniqueness_rows,
)
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.job import Job
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import fill, new_job

LONG = 10 * REMEMBERED
"""Seconds"""


def a_world(history: int = LONG) -> MemoryWorld:
    world = memory_world()
    return replace(world, timing=world.timing.model_copy(update={"history": history}))


def taken(world: MemoryWorld, job: Job, role: str) -> bool:
    """Write the job's row of this role; False when it was refused."""
    try:
        world.store.transact(role, [uniqueness_rows(world, job)[role]])
    except Refused:
        return False
    return True


def test_an_ordinary_job_is_not_the_only_one_of_anything() -> None:
    world = a_world()
    assert uniqueness_rows(world, new_job(world, fill(world, 1))) == {}


def test_a_request_makes_one_job_until_it_is_forgotten() -> None:
    world = a_world()
    job = new_job(world, fill(world, 1)).model_copy(update={"idempotency": "hash"})
    again = job.model_copy(update={"id": "again"})
    assert taken(world, job, REQUEST)
    assert not taken(world, again, REQUEST)
    world.runtime.sleep(REMEMBERED * 1000)
    assert taken(world, again, REQUEST)
    row = world.store.get(control_table.request_key("hash"))
    assert row is not None
    assert row["job_id"] == "again"


def test_a_request_is_not_remembered_longer_than_its_job_can_be_read() -> None:
    world = a_world(history=60)
    job = new_job(world, fill(world, 1)).model_copy(update={"idempotency": "hash"})
    assert taken(world, job, REQUEST)
    world.runtime.sleep(60_000)
    assert taken(world, job, REQUEST)


def test_only_an_ended_job_is_tried_again_and_only_once() -> None:
    world = a_world()
    old = new_job(world, fill(world, 1))
    again = old.model_copy(update={"id": "again", "retry_of": old.id})
    assert not taken(world, again, RETRIED)
    ended = Update(control_table.job_key(old.id), set={"state": State.SUCCEEDED.value})
    world.store.transact("end", [ended])
    assert taken(world, again, RETRIED)
    assert not taken(world, again.model_copy(update={"id": "third"}), RETRIED)
