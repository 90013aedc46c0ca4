"""What is decided about a message is done with it."""

from __future__ import annotations

import pytest

from handlers.jobs.execution.decisions import Decision, DeleteMessage, KeepMessage, apply_decision
from handlers.jobs.words.job import Lane
from handlers.testing.world import memory_world
from tests.support.jobs import fill, new_job, receive


@pytest.mark.parametrize(
    ("decision", "gone", "back_after"),
    [
        (DeleteMessage("done"), True, None),
        (KeepMessage("later", 5), False, 5),
        (KeepMessage("at once", 0), False, 0),
        (KeepMessage("not ours to move", None), False, 12),
    ],
)
def test_a_message_is_gone_or_comes_back_when_it_was_said(
    decision: Decision, *, gone: bool, back_after: int | None
) -> None:
    world = memory_world()
    queue = world.queues[Lane.SMALL]
    new_job(world, fill(world, 1))
    assert apply_decision(queue, receive(world, Lane.SMALL), decision) is gone
    if back_after:
        world.runtime.sleep(back_after * 1000 - 1)
        assert not queue.receive(1, 0)
        world.runtime.sleep(1)
    assert len(queue.receive(1, 0)) == (back_after is not None)


def test_a_newer_receipt_is_the_one_that_counts() -> None:
    world = memory_world()
    queue = world.queues[Lane.SMALL]
    new_job(world, fill(world, 1))
    old = receive(world, Lane.SMALL)
    queue.set_visibility(old.receipt, 0)
    newer = receive(world, Lane.SMALL)
    apply_decision(queue, old, DeleteMessage("done", newer.receipt))
    assert not queue.snapshot()
