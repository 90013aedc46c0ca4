"""Cases of effects that the worker runs itself (C79)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE, SECOND, LaneTiming, Timing, ms
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, minutes, now
from tests.support.sinks import OPERATION, Index

if TYPE_CHECKING:
    from handlers.jobs.words.effect import Batch, Delivered
    from handlers.jobs.words.job import Job

TIMING: Final = Timing(
    small=LaneTiming(heartbeat=20, lease_ttl=90, visibility=360),
    bulk=LaneTiming(heartbeat=30, lease_ttl=120, visibility=300),
    takeover_grace=420,
    function_timeout=60,
)
SINKS: Final = ("first", "second")
CHUNK: Final = 10


@dataclass
class Slow(Index):
    """A sink that takes its time, and knows what it was asked when."""

    world: MemoryWorld = field(default_factory=memory_world)
    takes: int = 0
    """ms"""
    asked: list[int] = field(default_factory=list)

    def deliver(self, batch: Batch) -> Delivered:
        self.asked.append(self.world.runtime.now())
        self.world.runtime.sleep(self.takes)
        return super().deliver(batch)


def slow_world(takes: int, sinks: int) -> tuple[MemoryWorld, list[Slow]]:
    operation = replace(OPERATION, sinks=SINKS)
    world = memory_world(
        operations={"bump": operation}, timing=TIMING, limits=Limits(chunk_size=CHUNK)
    )
    made = [Slow(world=world, takes=takes) for _ in range(sinks)]
    return replace(world, sinks=dict(zip(SINKS, made, strict=False))), made


def a_job(world: MemoryWorld, count: int) -> tuple[Job, list[str]]:
    ids = [f"r{n:03}" for n in range(count)]
    world.records.load(TENANT, {id_: {"n": 1, "version": 1} for id_ in ids})
    body = json.dumps({"operation": "bump", "subject": "s", "ids": ids})
    created = submit(world, TENANT, accept(parse(body), world.operations, max_ids=1000))
    assert isinstance(created, Created)
    return created.job, ids


def run_until_killed(world: MemoryWorld, worker: Worker) -> int:
    """Run the next small message, and return when its decision was there (ms)."""
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    decision = on_message(world, delivery, worker)
    ended = world.runtime.now()
    apply_decision(world.queues[Lane.SMALL], delivery, decision)
    return ended


@pytest.mark.parametrize("sinks", [1, 2])
@pytest.mark.parametrize("count", [CHUNK, 10 * CHUNK])
@pytest.mark.parametrize("seconds", [0.5, 7, 12, 26, 300])
def test_c79_effects_that_do_not_fit_into_the_functions_time_are_left_to_recovery(
    seconds: float, count: int, sinks: int
) -> None:
    """However slow a sink is: the function decides about its message before it is killed."""
    world, slow = slow_world(ms(seconds), sinks)
    job, ids = a_job(world, count)
    killed_at = world.runtime.now() + ms(TIMING.function_timeout)
    ended = run_until_killed(world, Worker("w", deadline=killed_at))
    assert ended <= killed_at - ms(TIMING.small_reserve) // 4
    after = now(world, job)
    promoted = after.lane is Lane.BULK and after.state is State.QUEUED
    assert promoted or after.state in {State.SUCCEEDED, State.SETTLING}
    if seconds * sinks * count // CHUNK < 30:
        assert after.state is State.SUCCEEDED
        return
    for sink in slow:
        sink.takes = SECOND
    minutes(world)
    settled = now(world, job)
    assert (settled.state, settled.succeeded, settled.effects_open) == (State.SUCCEEDED, count, 0)
    for sink in slow:
        assert {id_: sink.documents[id_] for id_ in ids} == dict.fromkeys(ids, (2, 2))


def test_c79_no_effect_begins_that_would_outlive_the_function() -> None:
    """As slow as those before it."""
    takes = 7 * SECOND
    world, [sink] = slow_world(takes, 1)
    a_job(world, 10 * CHUNK)
    killed_at = world.runtime.now() + ms(TIMING.function_timeout)
    run_until_killed(world, Worker("w", deadline=killed_at))
    assert 4 <= len(sink.asked) < 10
    assert max(sink.asked) + takes <= killed_at - ms(TIMING.small_reserve) // 2


def test_c79_a_worker_that_is_asked_to_end_begins_no_effect() -> None:
    """It has as little time as a function: what still waits is recovery's."""
    asked: list[bool] = []
    world, [sink] = slow_world(MINUTE // 2, 1)
    job, _ = a_job(world, 4 * CHUNK)

    def signal() -> None:
        world.runtime.sleep(MINUTE // 4)
        asked.append(True)

    world.runtime.spawn("signal", signal)
    began = world.runtime.now()
    ended = run_until_killed(world, Worker("w", stopping=lambda: bool(asked)))
    assert len(sink.asked) == 1
    assert ended - began < MINUTE
    sink.takes = 0
    minutes(world)
    assert now(world, job).state is State.SUCCEEDED
