"""Races of the protocol that the simulation found, each as small as it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handlers.jobs.effects.runner import EffectRunner
from handlers.jobs.execution.attempt import LOST, _Attempt
from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.lifecycle import control, submit
from handlers.jobs.lifecycle.cleanup import release_if_held
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.attempt import begin_attempt, renew_lease
from handlers.jobs.transitions.enqueue import dispatch_again, queued_job, requeue_job
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.transitions.pause import pause_transaction, request_stop
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.errors import JobFailed, Refused, Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.states import State
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, new_job, now, receive, write

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Delivery


def begin(world: MemoryWorld, job: Job, worker: str = "w1") -> Job:
    """Begin an attempt; of a running job once its lease has expired."""
    lease = read_lease(world, job) if job.state is State.RUNNING else None
    transaction = begin_attempt(world, job, worker=worker, receipt="r", expired=lease).transaction
    write(world, transaction)
    return now(world, job)


def attempt_of(world: MemoryWorld, job: Job, delivery: Delivery, worker: str) -> _Attempt:
    heart = Heartbeat(world, job, delivery)
    runner = EffectRunner(world, job.lane)
    return _Attempt(world, delivery, Worker(worker), heart, runner, start=job.position)


def test_a_beat_that_arrives_late_gives_no_queued_job_an_expiry() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    late = renew_lease(world, job)
    let_go = release_attempt(world, job, Release(give_back=True)).transaction
    write(world, let_go)
    with pytest.raises(Refused):
        write(world, late)
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.expires_at is None


def test_a_beat_that_arrives_late_gives_no_paused_job_an_expiry() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    late = renew_lease(world, job)
    write(world, request_stop(world, job, State.PAUSING).transaction)
    paused = pause_transaction(world, now(world, job)).transaction
    write(world, paused)
    with pytest.raises(Refused):
        write(world, late)


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


@pytest.mark.parametrize("result", [Transient("down"), JobFailed(EndReason.PAYLOAD_GONE)])
def test_an_attempt_that_was_replaced_does_not_conclude_for_its_successor(
    result: Transient | JobFailed,
) -> None:
    world = memory_world()
    old = begin(world, new_job(world, fill(world, 3)))
    delivery = receive(world, Lane.SMALL)
    world.runtime.sleep(5000)
    successor = begin(world, old, worker="w2")
    before = world.store.snapshot()
    assert attempt_of(world, old, delivery, "w1").conclude(old, result) == LOST
    assert world.store.snapshot() == before
    assert now(world, old) == successor


def test_an_attempt_whose_job_was_ended_by_somebody_else_concludes_nothing() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    delivery = receive(world, Lane.SMALL)
    end_job(world, job, Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED))
    failed = JobFailed(EndReason.PAYLOAD_GONE)
    assert attempt_of(world, job, delivery, "w1").conclude(job, failed) == LOST


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


def test_a_takeover_of_a_cancelled_job_leaves_a_note_to_delete_its_id_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submit, "INLINE_ID_BYTES", 1)
    world = memory_world()
    ids = fill(world, 3)
    job = begin(world, new_job(world, ids))
    write(world, request_stop(world, job, State.CANCELLING).transaction)
    world.runtime.sleep(60_000)
    new_job(world, ids)
    old = now(world, job)
    assert (old.state, old.cleanup) == (State.CANCELLED, True)


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
