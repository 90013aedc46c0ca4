"""Cases of subjects that stick, leak or get stolen (C06, C10, C11, C15)."""

from __future__ import annotations

import sys
import threading

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.finish import end_job, ending_of
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Busy, Created
from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import Rejected
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, MemoryWorld
from tests.support.jobs import (
    CHUNK,
    TENANT,
    chunked,
    create,
    fill,
    free,
    lease_of,
    minutes,
    new_job,
    now,
    prices,
    receive,
    run_next,
)
from tests.support.process import Killed, die, nth, process

SMALL = Lane.SMALL
ROUNDS = 200


# --- C06: one end -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["end", "take over"])
def test_c06_an_end_and_a_takeover_at_once_have_one_winner(first: str) -> None:
    """200 rounds of two real threads; who begins first alternates between the two tests."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        winners = [_race(first) for _ in range(ROUNDS)]
    finally:
        sys.setswitchinterval(interval)
    assert set(winners) <= {State.SUCCEEDED, State.FAILED}
    # Whoever begins first wins at least once, or there was no race in one of the directions.
    assert (State.SUCCEEDED if first == "end" else State.FAILED) in winners


def _race(first: str) -> State:
    world = chunked()
    ids = fill(world, CHUNK)
    job = _finished_but_not_ended(world, ids)
    old_fence = lease_of(world, job).fence
    rejected: list[Rejected] = []
    taken: list[object] = []

    def end() -> None:
        try:
            end_job(world, job, ending_of(job))
        except Rejected as error:
            rejected.append(error)

    threads = [
        threading.Thread(target=end),
        threading.Thread(target=lambda: taken.append(create(world, ids))),
    ]
    for thread in threads if first == "end" else reversed(threads):
        thread.start()
    for thread in threads:
        thread.join()
    [created] = taken
    assert isinstance(created, Created)
    old = now(world, job)
    lease = lease_of(world, job)
    assert (lease.job_id, lease.fence) == (created.job.id, created.job.fence)
    assert lease.fence > old_fence
    assert world.store.get(control_table.slots_key(TENANT, SMALL)) == {"in_flight": 1}
    ended_by_worker = world.telemetry.actions().count("job_ended")
    taken_over = world.telemetry.actions().count("taken_over")
    assert ended_by_worker + taken_over == 1
    assert len(rejected) == taken_over
    assert old.state is (State.FAILED if taken_over else State.SUCCEEDED)
    return old.state


def _finished_but_not_ended(world: MemoryWorld, ids: list[str]) -> Job:
    """Its worker stood still before the last write, until others may take the subject."""
    job = new_job(world, ids)
    here, store = process(world)
    store.before = nth(1, "end_succeeded", die)
    with pytest.raises(Killed):
        on_message(here, receive(world, SMALL), Worker("w1"))
    world.runtime.sleep(ms(SHORT.small.lease_ttl + SHORT.takeover_grace) + 1)
    finished = now(world, job)
    assert (finished.state, finished.position) == (State.RUNNING, len(ids))
    return finished


# --- C10: killed anywhere ---------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_c10_a_kill_at_any_write_costs_no_record_and_no_subject(when: str) -> None:
    """Of a job of five chunks: each transaction of its life, just before or just after it."""
    number, died = 0, True
    while died:
        number += 1
        died = _killed_at(number, when)
    assert number > 7  # begin, five chunks, the end, and then nobody died


def _killed_at(number: int, when: str) -> bool:
    world = chunked()
    ids = fill(world, 5 * CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    calls = 0

    def kill(_action: str) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise Killed

    setattr(store, when, kill)
    try:
        delivery = receive(world, SMALL)
        apply_decision(world.queues[SMALL], delivery, on_message(here, delivery, Worker("dies")))
        died = False
    except Killed:
        died = True
    reached = now(world, job)
    if reached.state is State.RUNNING:
        assert create(world, ids) == Busy(job.id, State.RUNNING)
    world.runtime.sleep(ms(SHORT.small.visibility))
    minutes(world, 3)
    done = now(world, job)
    assert (done.state, done.succeeded, done.position) == (State.SUCCEEDED, len(ids), len(ids))
    assert prices(world, ids) == {11}
    assert free(world, job)
    assert isinstance(create(world, ids), Created)
    return died


# --- C11: what is not over keeps its subject --------------------------------------------------


def _stopped(world: MemoryWorld) -> None:
    looks = iter([False, False, True])
    run_next(world, SMALL, stopping=lambda: next(looks))


def _promoted(world: MemoryWorld) -> None:
    run_next(world, SMALL, deadline=world.runtime.now() + 1)


def _let_go(world: MemoryWorld) -> None:
    here, store = process(world)

    def throttle(action: str) -> None:
        if action == "commit_chunk" and store.times("commit_chunk") == 2:
            raise Transient("throttled")

    store.before = throttle
    delivery = receive(world, SMALL)
    apply_decision(world.queues[SMALL], delivery, on_message(here, delivery, Worker("w1")))


@pytest.mark.parametrize("leave", [_stopped, _promoted, _let_go])
def test_c11_a_job_that_will_go_on_keeps_its_subject(leave: object) -> None:
    world = chunked()
    ids = fill(world, 5 * CHUNK)
    job = new_job(world, ids)
    assert callable(leave)
    leave(world)
    left = now(world, job)
    assert left.state is State.QUEUED
    lease = lease_of(world, job)
    assert (lease.job_id, lease.expires_at) == (job.id, None)
    assert create(world, ids) == Busy(job.id, State.QUEUED)
    minutes(world, 3)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}
    subjects = [item["subject"] for key, item in world.store.snapshot().items() if key.sk == "JOB"]
    assert subjects == [job.subject]


# --- C15: long expired ------------------------------------------------------------------------


def _dead_for_an_hour(attempts: int = 1) -> tuple[MemoryWorld, Job, list[str]]:
    """A RUNNING job whose worker died and whose message is gone, an hour ago."""
    world = chunked()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    store.before = nth(1, "commit_chunk", die)
    with pytest.raises(Killed):
        on_message(here, receive(world, SMALL), Worker("dies"))
    spent = Update(control_table.job_key(job.id), set={"attempt": attempts})
    world.store.transact("spend", [spent])
    world.runtime.sleep(ms(SHORT.small.visibility))
    world.queues[SMALL].delete(receive(world, SMALL).receipt)
    world.runtime.sleep(HOUR)
    return world, job, ids


def test_c15_a_lease_that_ended_long_ago_is_taken_over_by_the_next_request() -> None:
    world, job, ids = _dead_for_an_hour()
    created = create(world, ids)
    assert isinstance(created, Created)
    dead = now(world, job)
    assert (dead.state, dead.end_reason) == (State.FAILED, EndReason.TAKEN_OVER)
    minutes(world, 3)
    assert now(world, created.job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}
    assert free(world, job)


def test_c15_without_a_request_recovery_lets_the_job_go_on() -> None:
    world, job, ids = _dead_for_an_hour()
    minutes(world, 2)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}
    assert free(world, job)


def test_c15_with_its_attempts_used_up_recovery_fails_it_and_frees_the_subject() -> None:
    world, job, ids = _dead_for_an_hour(attempts=SHORT.small.max_attempts)
    Recovery(world).run()  # no worker has to look at it
    dead = now(world, job)
    assert (dead.state, dead.end_reason) == (State.FAILED, EndReason.ATTEMPTS_EXHAUSTED)
    assert free(world, job)
    assert isinstance(create(world, ids), Created)
