"""Cases of messages that are unreadable, unsent, waiting or dead (C12, C13, C17, C18, C25, C65)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.dead_letters import Fate, read_letter, redrive
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Busy, Created
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.messages import Message, message_for
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE, SECOND, ms
from handlers.jobs.words.writes import Update
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.world import SHORT, MemoryWorld
from infra.settings import PRODUCTION_TIMING
from tests.support.jobs import (
    chunked,
    create,
    fill,
    free,
    minutes,
    new_job,
    now,
    prices,
    receive,
    run_next,
)
from tests.support.process import Killed, die, nth, process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.timing import Timing

SMALL = Lane.SMALL
CHUNK = 10


# --- C12: unreadable --------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["{", '{"version":99}', "null"])
def test_c12_a_job_whose_message_cannot_be_read_runs_all_the_same(body: str) -> None:
    """Such a message is dropped: it says nothing of any job. The job's own row brings another."""

    class Broken(Message):
        @property
        def body(self) -> str:
            return body

    world = chunked()
    ids = fill(world, CHUNK)
    job = new_job(world, ids)
    world.queues[SMALL].delete(receive(world, SMALL).receipt)
    world.queues[SMALL].send([Broken(job.id, SMALL, "group")])
    minutes(world, 5)
    assert now(world, job).state is State.SUCCEEDED
    assert free(world, job)
    assert not world.dead_letters[SMALL].snapshot()
    assert isinstance(create(world, ids), Created)


def test_c12_a_subject_held_by_an_unreadable_job_is_busy_until_that_is_buried() -> None:
    world = chunked()
    ids = fill(world, CHUNK)
    job = new_job(world, ids)
    world.store.transact("break", [Update(control_table.job_key(job.id), set={"params": 7})])
    assert create(world, ids) == Busy(job.id, None)
    world.queues[SMALL].delete(receive(world, SMALL).receipt)  # its message is lost, too
    minutes(world, 3)
    assert isinstance(create(world, ids), Created)


# --- C13: taken, but not sent -----------------------------------------------------------------


class Deaf(MemoryLaneQueue):
    """Takes nothing until it hears again."""

    deaf = True

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        if self.deaf:
            raise Transient("down")
        return super().send(messages)


def test_c13_a_queue_that_is_down_for_minutes_delays_the_job_and_runs_it_once() -> None:
    world = chunked()
    queue = Deaf(world.runtime, name="small", visibility=SHORT.small.visibility)
    world = replace(world, queues={**world.queues, SMALL: queue})
    ids = fill(world, CHUNK)
    job = new_job(world, ids)
    for _ in range(5):
        assert create(world, ids) == Busy(job.id, State.QUEUED)
        Recovery(world).run()
        assert not queue.snapshot()
        world.runtime.sleep(MINUTE)
    queue.deaf = False
    minutes(world, 3)
    done = now(world, job)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
    assert prices(world, ids) == {11}
    assert not [key for key in world.store.snapshot() if key.sk.startswith("DISPATCH")]


# --- C17: waiting is not failing --------------------------------------------------------------


def test_c17_a_message_that_waits_for_its_jobs_live_owner_is_never_dead() -> None:
    """A second message is redelivered by the normal timer for a lease and a minute."""
    world = chunked()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)
    world.queues[SMALL].send([message_for(job)])
    here, store = process(world)
    until = world.runtime.now() + ms(SHORT.small.lease_ttl) + MINUTE

    def poll() -> None:
        while world.runtime.now() < until:
            for delivery in world.queues[SMALL].receive(1, 0):
                apply_decision(
                    world.queues[SMALL], delivery, on_message(world, delivery, Worker("second"))
                )
            world.runtime.sleep(SECOND)

    world.runtime.spawn("second", poll)
    store.before = nth(1, "commit_chunk", lambda: world.runtime.sleep(until - world.runtime.now()))
    delivery = receive(world, SMALL)
    apply_decision(world.queues[SMALL], delivery, on_message(here, delivery, Worker("owner")))
    assert not world.dead_letters[SMALL].snapshot()
    minutes(world, 2)
    done = now(world, job)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
    assert prices(world, ids) == {11}
    assert free(world, job)


@pytest.mark.parametrize("timing", [SHORT, PRODUCTION_TIMING])
@pytest.mark.parametrize("lane", list(Lane))
def test_c17_all_receives_together_outlast_a_lease(timing: Timing, lane: Lane) -> None:
    times = timing.lane(lane)
    assert times.max_receive_count * times.visibility > times.lease_ttl


# --- C18, C25: the message is dead ------------------------------------------------------------


def test_c18_a_crash_on_the_last_receive_leaves_nothing_stuck() -> None:
    """The receives before went to throttling; the one that began dies, and the message with it."""
    world = chunked()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)
    for _ in range(SHORT.small.max_receive_count - 1):
        receive(world, SMALL)
        world.runtime.sleep(ms(SHORT.small.visibility))
    here, store = process(world)
    store.before = nth(2, "commit_chunk", die)
    with pytest.raises(Killed):
        on_message(here, receive(world, SMALL), Worker("dies"))
    world.runtime.sleep(ms(SHORT.small.visibility))
    assert not world.queues[SMALL].receive(1, 0)
    assert len(world.dead_letters[SMALL].snapshot()) == 1
    assert now(world, job).state is State.RUNNING
    minutes(world, 5)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}
    assert free(world, job)


def test_c18_a_crash_on_every_receive_fails_the_job_before_its_message_is_dead() -> None:
    world = chunked()
    ids = fill(world, CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    store.before = lambda action: die() if action == "commit_chunk" else None
    for _ in range(SHORT.small.max_attempts):
        with pytest.raises(Killed):
            on_message(here, receive(world, SMALL), Worker("dies"))
        world.runtime.sleep(ms(SHORT.small.visibility))
    run_next(world, SMALL)
    failed = now(world, job)
    assert (failed.state, failed.end_reason) == (State.FAILED, EndReason.ATTEMPTS_EXHAUSTED)
    assert prices(world, ids) == {10}
    assert free(world, job)
    assert not world.dead_letters[SMALL].snapshot()


def _dead_before_it_started(world: MemoryWorld, ids: list[str]) -> Job:
    """Every receive of its message was throttled."""
    job = new_job(world, ids)
    for _ in range(SHORT.small.max_receive_count):
        receive(world, SMALL)
        world.runtime.sleep(ms(SHORT.small.visibility))
    assert not world.queues[SMALL].receive(1, 0)
    assert now(world, job).started_at is None
    return job


def test_c25_a_job_that_never_started_is_sent_again_and_its_dead_letter_does_no_work() -> None:
    world = chunked()
    ids = fill(world, CHUNK)
    job = _dead_before_it_started(world, ids)
    assert create(world, ids) == Busy(job.id, State.QUEUED)
    minutes(world, 4)
    assert now(world, job).state is State.SUCCEEDED
    [letter] = world.dead_letters[SMALL].receive(1, 0)
    assert (
        redrive(world, world.dead_letters[SMALL], read_letter(world, letter)).fate is Fate.DROPPED
    )
    assert prices(world, ids) == {11}
    assert free(world, job)


def test_c65_a_job_whose_dead_letter_has_expired_still_comes_to_its_end() -> None:
    world = chunked()
    ids = fill(world, CHUNK)
    job = _dead_before_it_started(world, ids)
    world.runtime.sleep(SHORT.small.dlq_retention * SECOND)
    assert not world.dead_letters[SMALL].snapshot()
    minutes(world, 2)
    assert now(world, job).state is State.SUCCEEDED
    assert free(world, job)
