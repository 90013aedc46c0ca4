"""A job that cannot succeed any more ends, and leaves the rest alone."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.retry_failed import retry_failed
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.states import State
from handlers.testing.world import MemoryWorld
from handlers.web.views import job_view
from tests.support.jobs import (
    CHUNK,
    TENANT,
    chunked,
    fill,
    free,
    new_job,
    now,
    prices,
    run_next,
)

COUNT = 50


def world_with(bad: int) -> tuple[MemoryWorld, list[str]]:
    """So many records that cannot be changed, before all others."""
    world = chunked()
    ids = fill(world, COUNT)
    world.records.load(TENANT, {id_: {"price": "x", "version": 1} for id_ in ids[:bad]})
    return world, ids


def ended(world: MemoryWorld, ids: list[str], **more: Any) -> Job:
    job = new_job(world, ids, **more)
    run_next(world)
    return now(world, job)


def test_it_ends_after_the_chunk_that_decides_and_leaves_the_rest_alone() -> None:
    world, ids = world_with(6)
    job = ended(world, ids, tolerated_failure_percent=10)
    assert (job.state, job.end_reason) == (State.FAILED, EndReason.TOO_MANY_FAILED)
    assert (job.position, job.failed, job.succeeded) == (CHUNK, 6, CHUNK - 6)
    assert prices(world, ids[CHUNK:]) == {10}
    assert job.message == "6 records failed, and at most 10 % may of 50; 40 were not tried"
    assert job_view(job, 0)["not_tried"] == COUNT - CHUNK
    assert free(world, job)


@pytest.mark.parametrize(
    ("bad", "percent", "tried"), [(5, 10, COUNT), (6, 10, CHUNK), (1, 0, CHUNK), (50, 100, COUNT)]
)
def test_only_what_is_over_the_tolerance_decides(bad: int, percent: int, tried: int) -> None:
    world, ids = world_with(bad)
    job = ended(world, ids, tolerated_failure_percent=percent)
    assert job.position == tried
    assert (job.state is State.FAILED) is (tried < COUNT)
    assert job_view(job, 0).get("not_tried", 0) == COUNT - tried


def test_a_request_can_have_every_record_tried() -> None:
    world, ids = world_with(6)
    job = ended(world, ids, tolerated_failure_percent=10, stop_when_hopeless=False)
    assert (job.state, job.end_reason) == (State.FAILED, EndReason.TOO_MANY_FAILED)
    assert job.position == COUNT
    assert "not_tried" not in job_view(job, 0)


def test_a_retry_tries_the_rest_and_then_the_failed_ones_can_be() -> None:
    world, ids = world_with(6)
    job = ended(world, ids, tolerated_failure_percent=10)
    assert not isinstance(retry_failed(world, TENANT, job.id, lambda: False), Job)
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    run_next(world)
    again = now(world, job)
    assert (again.state, again.position, again.failed) == (State.FAILED, COUNT, 6)
    assert prices(world, ids[CHUNK:]) == {11}
    assert isinstance(retry_failed(world, TENANT, job.id, lambda: False), Job)


@pytest.mark.parametrize("failed", [0, 1, 49])
def test_of_an_unknown_number_any_share_may_be_enough(failed: int) -> None:
    made = Job(
        id="j",
        tenant="t",
        subject="s",
        operation="o",
        params="{}",
        lane=Lane.BULK,
        state=State.RUNNING,
        fence=1,
        created_at=0,
        failed=failed,
        tolerated_failure_percent=1,
    )
    assert not made.hopeless
    assert made.model_copy(update={"tolerated_failure_percent": 0}).hopeless is (failed > 0)


def test_a_cancelled_job_says_what_it_did_not_try() -> None:
    world, ids = world_with(0)
    job = new_job(world, ids)
    control.cancel(world, TENANT, job.id)
    assert job_view(now(world, job), 0)["not_tried"] == COUNT
