"""A message for which nothing can be done now is kept, or sent again near its last receive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage, LookAgain
from handlers.jobs.execution.worker import _look_again
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import group_of
from handlers.testing.world import memory_world
from tests.support.jobs import fill, new_job, receive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.messages import Message

BUSY = LookAgain("busy")


@pytest.mark.parametrize(("before_last", "renewed"), [(2, False), (1, True), (0, True)])
def test_a_message_is_sent_again_at_its_last_receive_but_one(
    before_last: int, *, renewed: bool
) -> None:
    world = memory_world()
    new_job(world, fill(world, 1))
    delivery = receive(world, Lane.SMALL)
    count = world.timing.small.max_receive_count - before_last
    decision = _look_again(world, replace(delivery, receive_count=count), BUSY)
    assert isinstance(decision, DeleteMessage if renewed else KeepMessage)
    assert len(world.queues[Lane.SMALL].snapshot()) == 1 + renewed


@pytest.mark.parametrize("group", ["g", ""])
def test_a_message_that_is_sent_again_keeps_its_group_or_has_its_job_s(group: str) -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    delivery = replace(receive(world, Lane.SMALL), receive_count=99, group=group)
    _look_again(world, delivery, BUSY)
    groups = {stored.group for stored in world.queues[Lane.SMALL].snapshot()}
    assert (group or group_of(job.id)) in groups


@pytest.mark.parametrize("raises", [True, False])
def test_a_message_that_cannot_be_sent_again_is_kept(
    monkeypatch: pytest.MonkeyPatch, *, raises: bool
) -> None:
    world = memory_world()
    new_job(world, fill(world, 1))
    delivery = replace(receive(world, Lane.SMALL), receive_count=99)

    def send(messages: Sequence[Message]) -> frozenset[int]:
        if raises:
            raise Transient("down")
        return frozenset(range(len(messages)))

    monkeypatch.setattr(world.queues[Lane.SMALL], "send", send)
    assert isinstance(_look_again(world, delivery, BUSY), KeepMessage)
