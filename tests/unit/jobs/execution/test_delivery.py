"""What a message finds, by the state of its job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, Finding, KeepMessage, RunAttempt
from handlers.jobs.execution.delivery import find_out
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.lifecycle import control
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.ports import Delivery
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job, now, receive


def found(world: MemoryWorld, delivery: Delivery) -> Finding:
    return find_out(world, delivery, Worker("w"))


def put(world: MemoryWorld, job: Job, **attributes: str | int) -> None:
    world.store.transact("put", [Update(control_table.job_key(job.id), set=attributes)])


def test_a_queued_jobs_message_begins_its_attempt() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    finding = found(world, receive(world, Lane.SMALL))
    assert isinstance(finding, RunAttempt)
    assert finding.job == now(world, job)
    assert (finding.job.state, finding.job.attempt) == (State.RUNNING, 1)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (State.SUCCEEDED, "finished"),
        (State.FAILED, "finished"),
        (State.CANCELLED, "finished"),
        (State.SETTLING, "settling"),
        (State.PAUSED, "paused"),
    ],
)
def test_a_job_that_nobody_has_to_run_needs_no_message(state: State, why: str) -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    delivery = receive(world, Lane.SMALL)
    put(world, job, state=state.value)
    finding = found(world, delivery)
    assert isinstance(finding, DeleteMessage)
    assert finding.why.startswith(why)
    assert now(world, job).attempt == 0


def test_a_message_of_no_job_or_no_message_of_ours_is_deleted() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    delivery = receive(world, Lane.SMALL)
    unreadable = replace(delivery, body="{}")
    unknown = replace(delivery, body=delivery.body.replace(job.id, "0" * len(job.id)))
    assert found(world, unreadable) == DeleteMessage("unreadable")
    assert world.telemetry.total(Metric.UNREADABLE_MESSAGES) == 1
    assert found(world, unknown) == DeleteMessage("no such job")


def test_a_held_job_waits_without_a_message() -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    ids = fill(world, 1)
    new_job(world, ids)
    delivery = receive(world, Lane.SMALL)
    held = new_job(world, ids, "other")
    finding = found(world, replace(delivery, body=message_for(held).body))
    assert isinstance(finding, DeleteMessage)
    assert finding.why.startswith("held")


def test_a_job_in_back_off_keeps_its_message_hidden_until_then() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    delivery = receive(world, Lane.SMALL)
    put(world, job, retry_at=world.runtime.now() + 2500)
    assert found(world, delivery) == KeepMessage("waiting for retry", 3)


def test_a_live_workers_job_is_left_to_it_and_it_is_told_the_receipt() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    delivery = receive(world, Lane.SMALL)
    finding = found(world, delivery)
    assert finding == KeepMessage("held by live owner", SHORT.small.visibility)
    assert now(world, job).receipt == delivery.receipt
    assert now(world, job).fence == job.fence


def test_a_dead_workers_job_is_begun_again_under_a_higher_fence() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    delivery = receive(world, Lane.SMALL)
    world.runtime.sleep(ms(SHORT.small.lease_ttl))
    finding = found(world, delivery)
    assert isinstance(finding, RunAttempt)
    assert finding.job.attempt == 2
    assert finding.job.fence > job.fence


@pytest.mark.parametrize(
    ("ask", "ends"), [(control.cancel, State.CANCELLED), (control.pause, State.PAUSED)]
)
def test_what_was_asked_of_a_dead_worker_is_done_without_one(
    ask: Callable[[MemoryWorld, str, str], control.Answer],
    ends: State,
) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    delivery = receive(world, Lane.SMALL)
    ask(world, TENANT, job.id)
    world.runtime.sleep(ms(SHORT.small.lease_ttl))
    assert found(world, delivery) == DeleteMessage(ends.value.lower())
    assert now(world, job).state is ends


def test_a_job_out_of_attempts_ends() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    put(world, job, attempt=SHORT.small.max_attempts)
    assert found(world, receive(world, Lane.SMALL)) == DeleteMessage("failed")
    assert now(world, job).end_reason is EndReason.ATTEMPTS_EXHAUSTED
    assert lease_of(world, job).job_id is None


def test_a_job_whose_subject_is_anothers_ends_and_leaves_it() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("taken", [Update(key, set={"job_id": "newer"})])
    found(world, receive(world, Lane.SMALL))
    assert now(world, job).end_reason is EndReason.SUPERSEDED
    assert lease_of(world, job).job_id == "newer"
