"""The message of a dispatch row is sent at once; what is not sent stays a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from handlers.jobs.lifecycle.dispatch import drop_dispatch, send_dispatch
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import OutcomeUnknown, Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.messages import Message
from handlers.jobs.words.writes import Put
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import fill, new_job


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
