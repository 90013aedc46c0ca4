"""Every job that waits says why and since when; with more reads, behind how many and until when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.waiting import Wait, wait_now, wait_of
from handlers.jobs.words.job import Job, Lane, Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import SECOND
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job, now, run_next

ONE_SLOT = Limits(tenant_slots_small=1)


@pytest.fixture
def world() -> MemoryWorld:
    return memory_world(limits=ONE_SLOT)


def waits(world: MemoryWorld, job: Job) -> Wait:
    wait = wait_now(world, now(world, job))
    assert wait is not None
    return wait


def test_a_job_whose_message_no_worker_has_received_waits_for_its_lane(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 2))
    assert waits(world, job) == Wait(Waiting.LANE_BUSY, job.created_at)


def test_a_held_job_knows_how_many_of_its_tenant_are_before_it(world: MemoryWorld) -> None:
    ids = fill(world, 1)
    jobs = [new_job(world, ids, f"s{n}") for n in range(3)]
    assert [waits(world, job).reason for job in jobs[1:]] == [Waiting.TENANT_LIMIT] * 2
    assert [waits(world, job).ahead for job in jobs[1:]] == [0, 1]
    assert wait_of(now(world, jobs[2]), world.runtime.now()) == Wait(
        Waiting.TENANT_LIMIT, jobs[2].created_at
    )


def test_a_running_and_an_ended_job_do_not_wait(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 2))
    running = begin(world, job)
    assert wait_now(world, running) is None
    ended = running.model_copy(update={"state": State.SUCCEEDED, "waiting_reason": Waiting.RETRY})
    assert wait_of(ended, world.runtime.now()) is None


def test_the_wait_begins_with_the_state_not_with_the_job(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 2))
    world.runtime.sleep(7 * SECOND)
    control.pause(world, TENANT, job.id)
    paused_at = world.runtime.now()
    assert waits(world, job) == Wait(Waiting.PAUSED, paused_at)
    world.runtime.sleep(7 * SECOND)
    control.resume(world, TENANT, job.id)
    assert waits(world, job) == Wait(Waiting.LANE_BUSY, paused_at + 7 * SECOND)


def test_a_failed_attempt_waits_for_its_retry_and_repeated_ones_for_a_dependency(
    world: MemoryWorld,
) -> None:
    job = new_job(world, fill(world, 2))

    def fails(*_: object) -> None:
        from handlers.jobs.words.errors import Transient  # noqa: PLC0415

        raise Transient("down")

    world.records.read = fails  # type: ignore[method-assign,assignment]
    reasons = []
    for _ in range(3):
        run_next(world)
        wait = waits(world, job)
        reasons.append(wait.reason)
        assert wait.expected_start == now(world, job).retry_at
        assert wait.expected_start is not None
        world.runtime.sleep(wait.expected_start - world.runtime.now() + SECOND)
    assert reasons == [Waiting.RETRY, Waiting.DEPENDENCY_DOWN, Waiting.DEPENDENCY_DOWN]


def test_a_job_whose_next_try_is_due_waits_for_a_worker(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 2))
    at = world.runtime.now() + SECOND
    retried = now(world, job).model_copy(update={"waiting_reason": Waiting.RETRY, "retry_at": at})
    assert wait_of(retried, at - 1) == Wait(Waiting.RETRY, job.created_at, expected_start=at)
    assert wait_of(retried, at) == Wait(Waiting.LANE_BUSY, at)
    down = {"waiting_reason": Waiting.DEPENDENCY_DOWN}
    assert wait_of(retried.model_copy(update=down), at) == Wait(Waiting.LANE_BUSY, at)


def test_a_job_whose_message_cannot_be_sent_still_says_so_when_its_try_is_due(
    world: MemoryWorld,
) -> None:
    job = now(world, new_job(world, fill(world, 2)))
    parked = {
        "waiting_reason": Waiting.DEPENDENCY_DOWN,
        "retry_at": job.created_at + SECOND,
        "waiting_since": job.created_at + 2 * SECOND,
    }
    wait = wait_of(job.model_copy(update=parked), job.created_at + 3 * SECOND)
    assert wait == Wait(Waiting.DEPENDENCY_DOWN, job.created_at + 2 * SECOND)


@pytest.mark.parametrize("lane", list(Lane))
def test_c114_a_running_job_without_a_worker_says_so(world: MemoryWorld, lane: Lane) -> None:
    if lane is Lane.BULK:
        world = memory_world(limits=Limits(small_max_items=1))
    job = begin(world, new_job(world, fill(world, 2)))
    assert job.lane is lane
    assert wait_now(world, job) is None
    expires = lease_of(world, job).expires_at
    assert expires is not None
    world.runtime.sleep(expires - world.runtime.now())
    timing = world.timing.lane(lane)
    hidden = (timing.visibility - timing.lease_ttl) * SECOND
    assert waits(world, job) == Wait(
        Waiting.WORKER_LOST, expires, expected_start=round(expires + hidden)
    )
    # Its message comes back when a worker is free; nobody knows when that is.
    world.runtime.sleep(round(hidden))
    assert waits(world, job) == Wait(Waiting.WORKER_LOST, expires)


def test_a_settling_job_waits_for_its_effects(world: MemoryWorld) -> None:
    job = begin(world, new_job(world, fill(world, 2)))
    settling = job.model_copy(update={"state": State.SETTLING, "waiting_since": 5})
    assert wait_of(settling, 6) == Wait(Waiting.EFFECTS_OPEN, 5)
    parked = settling.model_copy(update={"waiting_reason": Waiting.EFFECTS_PARKED})
    assert wait_of(parked, 6) == Wait(Waiting.EFFECTS_PARKED, 5)


def test_a_job_of_an_older_version_waits_since_its_creation(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 2)).model_copy(update={"waiting_since": None})
    wait = wait_of(job, world.runtime.now())
    assert wait == Wait(Waiting.LANE_BUSY, job.created_at)
    assert replace(wait, since=0) != wait


# --- the expected start -----------------------------------------------------------------------

TAKES = 10 * SECOND
LINE = 8


def line_of(world: MemoryWorld) -> list[Job]:
    """Jobs of one tenant, of which each takes ten seconds of the one slot there is."""
    ids = fill(world, 2)
    read = world.records.read

    def slowly(*args: Any) -> Any:
        world.runtime.sleep(TAKES)
        return read(*args)

    world.records.read = slowly  # type: ignore[method-assign,assignment]
    jobs = []
    for number in range(LINE):
        jobs.append(new_job(world, ids, f"s{number}"))
        world.runtime.sleep(1)
    return jobs


@pytest.mark.parametrize("lane", list(Lane))
def test_a_job_in_line_is_expected_when_it_starts(lane: Lane) -> None:
    """Small jobs are held by their tenant's limit here, bulk jobs wait for the lane."""
    limits = ONE_SLOT if lane is Lane.SMALL else Limits(small_max_items=1, tenant_slots_bulk=LINE)
    world = memory_world(limits=limits)
    jobs = line_of(world)
    for _ in range(3):
        run_next(world, lane)
    waiting = [now(world, job) for job in jobs if now(world, job).state is State.QUEUED]
    assert len(waiting) == LINE - 3
    asked_at = world.runtime.now()
    # A small job that is not held starts at once.
    in_line = waiting if lane is Lane.BULK else waiting[1:]
    expected = {job.id: waits(world, job).expected_start for job in in_line}
    for job in waiting:
        run_next(world, lane)
        started = now(world, job).started_at
        assert started is not None
        if job in in_line:
            guess = expected[job.id]
            assert guess is not None
            assert abs(guess - started) <= max(TAKES, 0.3 * (started - asked_at))


def test_nothing_is_expected_of_a_tenant_without_a_history(world: MemoryWorld) -> None:
    ids = fill(world, 2)
    jobs = [new_job(world, ids, f"s{n}") for n in range(3)]
    assert [waits(world, job).expected_start for job in jobs] == [None] * 3
