"""The message of a dispatch row is sent at once; what is not sent stays a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from handlers.jobs.lifecycle.dispatch import (
    NOT_SENT,
    _waiting_job,
    drop_dispatch,
    recover_dispatch,
    replay_dispatch,
    send_dispatch,
    unsent_of_job,
)
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import OutcomeUnknown, Transient
from handlers.jobs.words.job import Job, Lane, Waiting
from handlers.jobs.words.messages import Message
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Found, Index, Put, Update
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import fill, new_job, now


class Broken(MemoryLaneQueue):
    """Refuses the first message, or raises."""

    error: Exception | None = None

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        if self.error is not None:
            raise self.error
        return frozenset({0})


def with_row() -> tuple[MemoryWorld, Job]:
    """A job whose dispatch row is there and whose message is not."""
    world = memory_world()
    job = new_job(world, fill(world, 1))
    for delivery in world.queues[Lane.SMALL].receive(1, 0):
        world.queues[Lane.SMALL].delete(delivery.receipt)
    world.store.transact("row", [Put(control_table.dispatch_key(job.id, job.dispatches), {"a": 1})])
    return world, job


def row(world: MemoryWorld, job: Job) -> object:
    return world.store.get(control_table.dispatch_key(job.id, job.dispatches))


def test_what_is_sent_leaves_no_row() -> None:
    world, job = with_row()
    assert send_dispatch(world, job)
    assert row(world, job) is None
    assert len(world.queues[Lane.SMALL].receive(10, 0)) == 1


@pytest.mark.parametrize("error", [None, Transient(), OutcomeUnknown(), RuntimeError("bug")])
def test_what_may_not_have_been_sent_keeps_its_row(error: Exception | None) -> None:
    world, job = with_row()
    broken = Broken(world.runtime, name="broken", visibility=1, retention=60)
    broken.error = error
    assert not send_dispatch(replace(world, queues={Lane.SMALL: broken}), job)
    assert row(world, job) is not None


def test_only_the_row_that_was_sent_is_dropped() -> None:
    world, job = with_row()
    drop_dispatch(world, job.id, job.dispatches + 1)
    assert row(world, job) is not None


# --- a message that cannot be sent ------------------------------------------------------------

WAITS = [
    ({}, True),
    ({"state": "RUNNING", "waiting_reason": "worker_lost"}, True),
    ({"state": "RUNNING"}, False),
    ({"state": "RUNNING", "waiting_reason": "rate_limit"}, False),
    ({"state": "PAUSING", "waiting_reason": "worker_lost"}, False),
    ({"state": "PAUSED"}, False),
    ({"waiting_reason": "tenant_limit"}, False),
    ({"dispatches": 2}, False),
]


def with_last_try(change: dict[str, int | str]) -> tuple[MemoryWorld, Job, Found]:
    """A job, and its due row, of which one try is left."""
    world = memory_world()
    job = new_job(world, fill(world, 1))
    key = control_table.dispatch_key(job.id, job.dispatches)
    due = control_table.due(control_table.DISPATCH, job.id, world.runtime.now(), world.due_shards)
    last = world.limits.max_dispatch_tries - 1
    item = {"job_id": job.id, "tenant": job.tenant, "lane": "small", "tries": last, **due}
    world.store.transact("row", [Put(key, item)])
    if change:
        world.store.transact("change", [Update(control_table.job_key(job.id), set=change)])
    return world, now(world, job), Found(key, item)


@pytest.mark.parametrize(("change", "waits"), WAITS)
def test_a_job_waits_for_its_newest_message_while_no_worker_runs_it(
    change: dict[str, int | str], *, waits: bool
) -> None:
    world, job, _ = with_last_try(change)
    assert (_waiting_job(world, job.id, 1) == job) is waits


@pytest.mark.parametrize(("change", "waits"), WAITS)
def test_c78_a_job_that_waits_says_that_its_message_is_not_sent_until_a_replay(
    change: dict[str, int | str], *, waits: bool
) -> None:
    world, job, found = with_last_try(change)
    broken = Broken(world.runtime, name="broken", visibility=1, retention=60)
    with pytest.raises(Transient):
        recover_dispatch(replace(world, queues={Lane.SMALL: broken}), found)
    parked = now(world, job)
    assert (parked.message == NOT_SENT) is waits
    queued = waits and job.state is State.QUEUED
    down = Waiting.DEPENDENCY_DOWN if queued else job.waiting_reason
    assert parked.waiting_reason is down
    [measure] = [m for m in world.telemetry.counts if m.metric == Metric.DISPATCHES_PARKED]
    assert measure.lane is Lane.SMALL
    [unsent] = unsent_of_job(world, job.id)
    assert replay_dispatch(world, unsent)
    again = now(world, job)
    assert again.message == ""
    assert again.waiting_reason is (None if queued else job.waiting_reason)
    assert (world.store.get(found.key) or {})[Index.DUE.sk] == world.runtime.now()


def test_a_parked_message_of_a_lane_that_is_not_known_is_counted_without_one() -> None:
    world, _, found = with_last_try({})
    strange = Found(found.key, {**found.item, "lane": "fast"})
    with pytest.raises(ValueError, match="fast"):
        recover_dispatch(world, strange)
    [measure] = [m for m in world.telemetry.counts if m.metric == Metric.DISPATCHES_PARKED]
    assert measure.lane is None
