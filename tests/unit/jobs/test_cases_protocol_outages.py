"""Cases of dependencies that are down, with the times of a deployment (C70)."""

from __future__ import annotations

from typing import Final
from unittest.mock import patch

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import submit as submitting
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import INLINE_ID_BYTES
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, MINUTE, SECOND, ms
from handlers.testing.world import MemoryWorld
from infra.settings import PRODUCTION_TIMING
from tests.support.jobs import TENANT, fill, new_job, now, receive
from tests.support.outages import DEPENDENCIES, Outage, deployed, work
from tests.support.sinks import Index

JOBS: Final = 8
LASTS: Final = 10 * MINUTE
BOUND: Final = 2 * ms(PRODUCTION_TIMING.small.visibility)
"""How long after the end of an outage every job has started, at the latest."""


@pytest.mark.parametrize("takes", [0, 5 * SECOND])
@pytest.mark.parametrize("dependency", DEPENDENCIES)
def test_c70_an_outage_leaves_no_dead_letter_and_work_goes_on_soon_after(
    dependency: str, takes: int
) -> None:
    """Some jobs are there when it begins, and another is created once it is over."""
    whole = deployed(Index() if dependency == "search" else None)
    operation: dict[str, object] = (
        {"operation": "bump", "params": {}} if dependency == "search" else {}
    )
    ids = fill(whole, 5)
    whole.records.load(TENANT, {id_: {"price": 10, "n": 1, "version": 1} for id_ in ids})
    most_inline = 1 if dependency == "payloads" else INLINE_ID_BYTES
    with patch.object(submitting, "INLINE_ID_BYTES", most_inline):
        jobs = [new_job(whole, ids, f"s{number}", **operation) for number in range(JOBS)]
    assert bool(whole.payloads.names()) == (dependency == "payloads")
    begins = whole.runtime.now()
    outage = Outage(dependency, begins, begins + LASTS, takes=takes)
    world = outage.seen_from(whole)

    def ask() -> None:
        whole.runtime.sleep(LASTS)
        jobs.append(new_job(whole, ids, "after", **operation))

    whole.runtime.spawn("client", ask)

    def over() -> bool:
        return len(jobs) > JOBS and all(now(whole, job).state.terminal for job in jobs)

    work(world, over)
    assert [now(whole, job).state for job in jobs] == [State.SUCCEEDED] * len(jobs)
    assert not any(queue.snapshot() for queue in whole.dead_letters.values())
    assert max(late(whole, job, outage) for job in jobs) <= BOUND


def late(world: MemoryWorld, job: Job, outage: Outage) -> int:
    """How long after the outage the job started (ms)."""
    return (now(world, job).started_at or 0) - outage.ends


def test_c70_a_message_that_was_received_often_before_is_sent_again_instead() -> None:
    """Its last receives would be over long before the outage is."""
    world = deployed()
    job = new_job(world, fill(world, 5))
    most = PRODUCTION_TIMING.small.max_receive_count
    for _ in range(most - 1):
        delivery = receive(world, Lane.SMALL)
        world.queues[Lane.SMALL].set_visibility(delivery.receipt, 0)
    begins = world.runtime.now()
    outage = Outage("control table", begins, begins + HOUR)
    work(
        outage.seen_from(world),
        lambda: world.runtime.now() > outage.ends and now(world, job).state.terminal,
    )
    assert now(world, job).state is State.SUCCEEDED
    assert late(world, job, outage) <= BOUND
    assert not world.dead_letters[Lane.SMALL].snapshot()


def test_c70_a_message_is_looked_at_less_and_less_often() -> None:
    """The control: at the same pace its receives would be used up within a minute."""
    world = deployed()
    new_job(world, fill(world, 5))
    begins = world.runtime.now()
    seen = Outage("control table", begins, begins + HOUR).seen_from(world)
    waits = []
    for _ in range(PRODUCTION_TIMING.small.max_receive_count - 2):
        delivery = receive(world, Lane.SMALL)
        decision = on_message(seen, delivery, Worker("w"))
        apply_decision(world.queues[Lane.SMALL], delivery, decision)
        at = world.runtime.now()
        while not world.queues[Lane.SMALL].depth().waiting:
            world.runtime.sleep(SECOND)
        waits.append(world.runtime.now() - at)
    assert waits == sorted(waits)
    assert waits[-1] == ms(PRODUCTION_TIMING.small.visibility)
    assert sum(waits) > LASTS
