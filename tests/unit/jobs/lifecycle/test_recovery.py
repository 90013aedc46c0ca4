"""A run of recovery: what it finds and what it does with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import create, fill, now, run_next

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.messages import Message
    from handlers.testing.runtime import ManualRuntime


def _deaf(world: MemoryWorld) -> MemoryWorld:
    """The same world, with queues that accept nothing."""
    return replace(world, queues={lane: _DeafQueue(world.runtime) for lane in Lane})


class _DeafQueue(MemoryLaneQueue):
    def __init__(self, runtime: ManualRuntime) -> None:
        super().__init__(runtime, name="deaf", visibility=1, retention=60)

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        raise Transient(f"{len(messages)} not sent")


def test_recovery_sends_what_the_fast_path_did_not() -> None:
    world = memory_world()
    ids = fill(world, 3)
    outcome = create(_deaf(world), ids)
    assert isinstance(outcome, Created)
    job = outcome.job
    assert not world.queues[Lane.SMALL].receive(1, 0)
    world.runtime.sleep(60_000)
    settled = Recovery(world).run()
    assert settled["dispatch"] == 1
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.SUCCEEDED
