"""What is left to workers of a newer version, and for how long. ``test_cases_protocol_rollout``
drives it from messages and recovery."""

from __future__ import annotations

from handlers.jobs.lifecycle.rollout import STAMP, left_to_newer
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Job
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Item
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import begin, fill, new_job

ROLLOUT = 900


def rolling(seconds: float = ROLLOUT) -> tuple[MemoryWorld, Job]:
    world = memory_world(timing=SHORT.model_copy(update={"rollout": seconds}))
    return world, new_job(world, fill(world, 2))


def item_of(world: MemoryWorld, job: Job) -> Item:
    item = world.store.get(control_table.job_key(job.id))
    assert item is not None
    return item


def left(world: MemoryWorld, job: Job, item: Item) -> bool:
    return left_to_newer(world, job.id, item, "unknown operation")


def test_the_first_look_stamps_the_job_and_counts_once() -> None:
    world, job = rolling()
    assert left(world, job, item_of(world, job))
    assert item_of(world, job)[STAMP] == world.runtime.now()
    assert left(world, job, item_of(world, job))
    assert world.telemetry.total(Metric.NOT_UNDERSTOOD) == 1


def test_it_ends_at_the_bound() -> None:
    world, job = rolling()
    left(world, job, item_of(world, job))
    world.runtime.sleep(ms(ROLLOUT) - 1)
    assert left(world, job, item_of(world, job))
    world.runtime.sleep(1)
    assert not left(world, job, item_of(world, job))


def test_without_a_bound_nothing_is_left() -> None:
    world, job = rolling(0)
    before = item_of(world, job)
    assert not left(world, job, before)
    assert item_of(world, job) == before


def test_a_job_that_a_newer_worker_has_begun_is_not_stamped() -> None:
    world, job = rolling()
    read = item_of(world, job)
    begin(world, job)
    assert left(world, job, read)
    assert item_of(world, job).get(STAMP) is None
