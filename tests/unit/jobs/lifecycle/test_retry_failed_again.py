"""Which ended jobs have failed records to try again, and what a second request finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle.control import NoSuchJob, NotPossible, Unchanged
from handlers.jobs.lifecycle.retry_failed import _why_not, retry_failed
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Job
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete
from tests.support.jobs import TENANT, now, run_next
from tests.support.quotas import made, world_of

if TYPE_CHECKING:
    from handlers.jobs.lifecycle.control import Answer
    from handlers.testing.world import MemoryWorld

FAILED: Final = {"total": 5, "position": 5, "failed": 1}


def with_failures() -> tuple[MemoryWorld, Job]:
    world = world_of()
    job = made(world, "f", field_="none")
    run_next(world)
    return world, now(world, job)


def again(world: MemoryWorld, job_id: str) -> Answer:
    return retry_failed(world, TENANT, job_id, lambda: False)


def test_a_second_request_finds_the_first_one_s_job() -> None:
    world, job = with_failures()
    first = again(world, job.id)
    assert isinstance(first, Job)
    before = world.store.snapshot()
    second = again(world, job.id)
    assert isinstance(second, Unchanged)
    assert second.job.id == first.id
    assert world.store.snapshot() == before
    world.store.transact("gone", [Delete(control_table.job_key(first.id))])
    gone = again(world, job.id)
    assert isinstance(gone, NotPossible)
    assert "earlier request" in gone.why


def test_a_job_that_nobody_has_is_not_retried() -> None:
    assert isinstance(again(world_of(), "none"), NoSuchJob)


@pytest.mark.parametrize(
    ("state", "change", "why"),
    [
        (State.SUCCEEDED, {}, None),
        (State.FAILED, {}, None),
        (State.CANCELLED, {"position": 3}, None),
        (State.SUCCEEDED, {"position": 4}, None),
        (State.FAILED, {"position": 4}, "retry the whole job first"),
        (State.SUCCEEDED, {"failed": 0}, "none of its records"),
        (State.RUNNING, {}, "when it has ended"),
        (State.SETTLING, {}, "when it has ended"),
    ],
)
def test_failed_records_of_an_ended_job_are_tried_again(
    state: State, change: dict[str, int], why: str | None
) -> None:
    _, job = with_failures()
    told = _why_not(job.model_copy(update={"state": state, **FAILED, **change}))
    assert (told is None) is (why is None)
    assert why is None or why in str(told)
