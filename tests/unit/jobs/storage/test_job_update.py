"""What a transition says of the job afterwards is what is stored, answered and told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.events.rows import _time
from handlers.jobs.lifecycle import control
from handlers.jobs.storage.job_update import COUNTERS, job_update
from handlers.jobs.storage.transaction import execute
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.event import EVENT_BUS
from handlers.jobs.words.job import Job, Lane, Waiting
from handlers.jobs.words.states import IllegalTransition, State
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, new_job, now, receive, run_next
from tests.support.listeners import Ear

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3_600_000


def in_back_off(world: MemoryWorld) -> Job:
    """A job that waits for its retry, with everything an attempt leaves behind."""
    job = new_job(world, fill(world, 3))
    receipt = receive(world, Lane.SMALL).receipt
    begun = begin_attempt(world, job, worker="w", receipt=receipt, expired=None)
    execute(world, begun.transaction)
    later = Release(give_back=False, retry_at=world.runtime.now() + HOUR, retries=1)
    waits = release_attempt(world, begun.after, later)
    execute(world, waits.transaction)
    assert now(world, job) == waits.after
    assert waits.after.waiting_reason is Waiting.RETRY
    return job


@pytest.mark.parametrize("verb", [control.cancel, control.pause])
def test_a_job_in_back_off_is_answered_stored_and_told_of_alike(
    verb: Callable[[MemoryWorld, str, str], object],
) -> None:
    world = memory_world(tick=1)
    job = in_back_off(world)
    ear = Ear()
    answer = verb(replace(world, listeners={EVENT_BUS: ear}), TENANT, job.id)
    assert isinstance(answer, Job)
    assert answer == now(world, job)
    assert answer.retry_at is None
    for event in ear.heard:
        told = json.loads(event.detail)["job"]
        assert told["state"] == answer.state
        assert told.get("finished_at") == _time(answer.finished_at)
    assert bool(ear.heard) is answer.state.terminal


def test_the_end_of_a_run_job_is_stored_and_told_of_alike() -> None:
    world = memory_world(tick=1)
    job = new_job(world, fill(world, 3))
    ear = Ear()
    run_next(replace(world, listeners={EVENT_BUS: ear}), Lane.SMALL)
    told = json.loads(ear.heard[-1].detail)["job"]
    assert told["finished_at"] == _time(now(world, job).finished_at)


def test_every_field_is_written_as_it_is_afterwards() -> None:
    """Whatever a transition changes, so a field that is new is not forgotten."""
    world = memory_world()
    job = new_job(world, fill(world, 3))
    after = in_back_off(memory_world(seed=1)).model_copy(
        update={"id": job.id, "dispatches": 7, "message": "m", "succeeded": 2, "effects_open": 1}
    )
    world.store.transact("all", [job_update(world, job, after, when=())])
    assert now(world, job) == after


def test_what_does_not_change_is_not_written() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    equal = {"ids": (*(job.ids or ()),), "labels": dict(job.labels)}
    update = job_update(world, job, job.model_copy(update={"message": "m", **equal}), when=())
    assert (update.set, update.add, update.remove) == ({"message": "m"}, {}, ())


def test_counters_are_added_to() -> None:
    """More than one writer changes them, so none may write what it has read."""
    world = memory_world()
    job = new_job(world, fill(world, 3))
    after = job.model_copy(update=dict.fromkeys(COUNTERS, 2))
    update = job_update(world, job, after, when=())
    assert update.set == {}
    assert update.add == dict.fromkeys(COUNTERS, 2)


def test_an_ended_job_says_when_its_history_goes_and_a_retried_one_no_more() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    ended = job.model_copy(update={"state": State.FAILED, "finished_at": 5_000})
    end = job_update(world, job, ended, when=())
    assert end.set["expires_at_seconds"] == world.timing.history_ends(5_000)
    again = job_update(world, ended, job, when=())
    assert {"finished_at", "expires_at_seconds"} <= set(again.remove)


def test_an_edge_that_does_not_exist_is_a_bug() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    with pytest.raises(IllegalTransition):
        job_update(world, job, job.model_copy(update={"state": State.PAUSING}), when=())


def test_an_attempt_begins_on_an_edge_alone() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    with pytest.raises(IllegalTransition):
        job_update(world, job, job.model_copy(update={"attempt": 1}), when=())
    running = job.model_copy(update={"state": State.RUNNING, "attempt": 1})
    resumed = job_update(world, running, running.model_copy(update={"attempt": 2}), when=())
    assert resumed.set == {"attempt": 2}
    given_back = job_update(world, job, job.model_copy(update={"attempt": -1}), when=())
    assert given_back.set == {"attempt": -1}
