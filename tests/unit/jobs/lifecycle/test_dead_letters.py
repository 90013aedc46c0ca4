"""Dead letters: what becomes of each, by the state of its job (C67)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.dead_letters import (
    FAILS_AGAIN,
    NOT_AGAIN,
    Fate,
    _fails_again,
    read_letter,
    redrive,
)
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import Message, group_of
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, now, use_up

if TYPE_CHECKING:
    from handlers.jobs.lifecycle.dead_letters import Redriven

DEAD = Lane.SMALL


def new_job(world: MemoryWorld, field: str = "n", tolerated: int = 100) -> Job:
    world.records.load(TENANT, {"a": {"n": 1, "version": 1}})
    body = {
        "operation": "adjust_number",
        "subject": "s",
        "params": {"field": field, "add": 1},
        "ids": ["a"],
        "tolerated_failure_percent": tolerated,
    }
    request = accept(parse(json.dumps(body)), world.operations, max_ids=10)
    created = submit(world, TENANT, request)
    assert isinstance(created, Created)
    return created.job


def die(world: MemoryWorld) -> None:
    """The queue gives up on the message that is in it."""
    queue = world.queues[DEAD]
    world.runtime.sleep(60_000)
    for stored in queue.snapshot():
        world.dead_letters[DEAD].accept_dead_letter(stored, world.runtime.now())
    for delivery in queue.receive(10, 0):
        queue.delete(delivery.receipt)


def run(world: MemoryWorld) -> None:
    """Run the next message of the lane, and leave it where it is."""
    [delivery] = world.queues[DEAD].receive(1, 0)
    on_message(world, delivery, Worker("w"))


def redrive_one(world: MemoryWorld, *, force: bool = False) -> Redriven:
    [delivery] = world.dead_letters[DEAD].receive(1, 0)
    return redrive(world, world.dead_letters[DEAD], read_letter(world, delivery), force=force)


def test_c67a_a_failed_job_runs_again_with_fresh_attempts() -> None:
    world = memory_world()
    job = new_job(world)
    use_up(world, job)
    run(world)
    assert now(world, job).state is State.FAILED
    die(world)
    assert redrive_one(world).fate is Fate.RETRIED
    assert not world.dead_letters[DEAD].snapshot()
    again = now(world, job)
    assert (again.state, again.attempt, again.end_reason) == (State.QUEUED, 0, None)
    [sent] = world.queues[DEAD].snapshot()
    assert sent.group == group_of(TENANT)


def test_c67b_a_finished_job_does_nothing() -> None:
    world = memory_world()
    job = new_job(world)
    run(world)
    die(world)
    before = world.store.snapshot()
    assert redrive_one(world).fate is Fate.DROPPED
    assert not world.dead_letters[DEAD].snapshot()
    assert world.store.snapshot() == before
    assert now(world, job).state is State.SUCCEEDED


def test_c67c_a_job_whose_subject_has_a_newer_one_is_refused() -> None:
    world = memory_world()
    new_job(world, field="missing", tolerated=0)
    run(world)
    die(world)
    newer = new_job(world)
    before = world.store.snapshot()
    refused = redrive_one(world)
    assert refused.fate is Fate.REFUSED
    assert newer.id in refused.why
    assert world.store.snapshot() == before
    assert len(world.dead_letters[DEAD].snapshot()) == 1


def test_c25_a_job_that_never_started_says_so_and_runs_once() -> None:
    world = memory_world()
    job = new_job(world)
    die(world)
    [delivery] = world.dead_letters[DEAD].receive(1, 0)
    letter = read_letter(world, delivery)
    assert letter.never_started
    assert redrive(world, world.dead_letters[DEAD], letter).fate is Fate.RESENT
    [sent] = world.queues[DEAD].snapshot()
    assert (sent.body, sent.group) == (delivery.body, group_of(TENANT))
    run(world)
    ended = now(world, job)
    assert (ended.state, ended.attempt) == (State.SUCCEEDED, 1)
    assert world.records.read(TENANT, ["a"])["a"].fields["n"] == 2


@pytest.mark.parametrize(
    "body", ["{", '{"version":9}', '{"version":1,"job_id":"x","lane":"small"}']
)
def test_letters_that_point_nowhere_are_dropped(body: str) -> None:
    class Broken(Message):
        @property
        def body(self) -> str:
            return body

    world = memory_world()
    world.dead_letters[DEAD].send([Broken("x", Lane.SMALL, "g")])
    assert redrive_one(world).fate is Fate.DROPPED
    assert not world.dead_letters[DEAD].snapshot()


def test_a_paused_jobs_letter_is_dropped_and_resuming_sends_a_new_one() -> None:
    world = memory_world()
    job = new_job(world)
    control.pause(world, TENANT, job.id)
    die(world)
    assert redrive_one(world).fate is Fate.DROPPED
    control.resume(world, TENANT, job.id)
    run(world)
    assert now(world, job).state is State.SUCCEEDED


def test_a_native_redrive_in_the_console_is_harmless() -> None:
    """The console moves the message back as it is: a failed job stays failed, nothing is stuck."""
    world = memory_world()
    job = new_job(world, field="missing", tolerated=0)
    run(world)
    die(world)
    [stored] = world.dead_letters[DEAD].snapshot()
    world.queues[DEAD].accept_dead_letter(stored, world.runtime.now())
    run(world)
    ended = now(world, job)
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.TOO_MANY_FAILED)
    assert isinstance(new_job(world), Job)


def broken_job(world: MemoryWorld) -> Job:
    job = new_job(world)
    world.store.transact("break", [Update(control_table.job_key(job.id), set={"params": 7})])
    return job


def test_c12_the_letter_of_a_job_nobody_can_read_is_shown_and_changes_nothing() -> None:
    world = memory_world()
    broken_job(world)
    die(world)
    before = world.store.snapshot()
    [delivery] = world.dead_letters[DEAD].receive(1, 0)
    letter = read_letter(world, delivery)
    assert letter.job is None
    assert letter.problem.startswith("undecodable")
    assert world.store.snapshot() == before


def test_c12_redriving_it_ends_the_job_and_frees_its_subject() -> None:
    world = memory_world()
    job = broken_job(world)
    die(world)
    assert redrive_one(world).fate is Fate.DROPPED
    assert not world.dead_letters[DEAD].snapshot()
    item = world.store.get(control_table.job_key(job.id))
    assert item is not None
    assert (item["state"], item["end_reason"]) == ("FAILED", "undecodable")
    assert isinstance(new_job(world), Job)


def test_the_letter_of_a_job_that_a_newer_version_runs_stays() -> None:
    world = memory_world()
    job = broken_job(world)
    die(world)
    lasts = world.runtime.now() + 4000
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("begin", [Update(key, set={"expires_at": lasts})])
    before = world.store.snapshot()
    refused = redrive_one(world)
    assert refused.fate is Fate.REFUSED
    assert "lease" in refused.why
    assert world.store.snapshot() == before
    assert len(world.dead_letters[DEAD].snapshot()) == 1


def failed(world: MemoryWorld, reason: EndReason | None, message: str = "") -> Job:
    """A dead job that ended for this reason before its first record."""
    job = new_job(world)
    end_job(world, job, Ending(State.FAILED, reason, message))
    die(world)
    return job


@pytest.mark.parametrize("reason", sorted(FAILS_AGAIN))
def test_c118_a_job_that_would_fail_again_is_refused_unless_forced(reason: EndReason) -> None:
    world = memory_world()
    job = failed(world, reason, "line 3 cannot be read")
    before = world.store.snapshot()
    refused = redrive_one(world)
    assert refused.fate is Fate.REFUSED
    assert "line 3 cannot be read" in refused.why
    assert world.store.snapshot() == before
    assert len(world.dead_letters[DEAD].snapshot()) == 1
    world.runtime.sleep(60_000)
    assert redrive_one(world, force=True).fate is Fate.RETRIED
    assert now(world, job).state is State.QUEUED


@pytest.mark.parametrize(
    "reason", [EndReason.ATTEMPTS_EXHAUSTED, EndReason.UNKNOWN_OPERATION, None]
)
def test_c118_a_job_that_may_succeed_now_runs_again(reason: EndReason | None) -> None:
    world = memory_world()
    failed(world, reason)
    assert redrive_one(world).fate is Fate.RETRIED


def test_c118_a_job_with_too_many_failures_and_records_left_is_refused() -> None:
    world = memory_world(limits=Limits(chunk_size=1))
    world.records.load(TENANT, {id_: {"n": 1, "version": 1} for id_ in "ab"})
    body = {
        "operation": "adjust_number",
        "subject": "s",
        "params": {"field": "missing", "add": 1},
        "ids": ["a", "b"],
        "tolerated_failure_percent": 0,
    }
    created = submit(world, TENANT, accept(body, world.operations, max_ids=10))
    assert isinstance(created, Created)
    run(world)
    assert now(world, created.job).not_tried == 1
    die(world)
    assert "would fail again" in redrive_one(world).why


def test_c118_every_end_is_judged() -> None:
    """A new reason has to be put in its place."""
    may_succeed = {
        EndReason.ATTEMPTS_EXHAUSTED,
        EndReason.UNKNOWN_OPERATION,
        EndReason.TOO_MANY_FAILED,
    }
    assert set(EndReason) == FAILS_AGAIN | NOT_AGAIN | may_succeed


@pytest.mark.parametrize("reason", sorted(NOT_AGAIN))
def test_a_job_that_another_followed_is_refused_even_when_forced(reason: EndReason) -> None:
    world = memory_world()
    failed(world, reason)
    refused = redrive_one(world, force=True)
    assert (refused.fate, refused.why) == (Fate.REFUSED, f"the job was {reason}")


def test_c118_why_a_job_would_fail_again_is_said_in_its_own_words_or_others() -> None:
    job = new_job(memory_world())
    told = {
        message: _fails_again(
            job.model_copy(
                update={
                    "state": State.FAILED,
                    "total": 9,
                    "failed": 2,
                    "tolerated_failure_percent": 0,
                    "message": message,
                }
            )
        )
        for message in ("its own words", "")
    }
    assert told["its own words"] == "its own words"
    assert told[""] == "2 of its records failed, more than it tolerates"
    ended = job.model_copy(update={"state": State.FAILED, "end_reason": EndReason.BAD_UPLOAD})
    assert _fails_again(ended) == "it ended as bad_upload"


def test_a_held_job_is_sent_no_message() -> None:
    world = memory_world()
    job = new_job(world)
    die(world)
    waits = Update(control_table.job_key(job.id), set={"waiting_reason": "tenant_limit"})
    world.store.transact("held", [waits])
    assert redrive_one(world).fate is Fate.DROPPED
    assert not world.queues[DEAD].snapshot()
