"""Cases of a message whose job has moved to another lane (C71)."""

from __future__ import annotations

from typing import Final

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.ports import Delivery
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import SECOND, ms
from handlers.testing.world import MemoryWorld
from tests.support.jobs import (
    CHUNK,
    TENANT,
    begin,
    chunked,
    fill,
    minutes,
    new_job,
    now,
    prices,
    receive,
    run_next,
)

WORK: Final = 5 * CHUNK
UNFINISHED: Final = [s for s in State if not s.terminal and s is not State.SETTLING]


def promoted() -> tuple[MemoryWorld, Job, list[str], Delivery]:
    """A small job that its function promoted; the function died before it deleted the message,
    which has been received again."""
    world = chunked()
    ids = fill(world, WORK)
    job = new_job(world, ids)
    delivery = receive(world, Lane.SMALL)
    worker = Worker("fn", deadline=world.runtime.now())
    assert isinstance(on_message(world, delivery, worker), DeleteMessage)
    job = now(world, job)
    assert (job.lane, job.state) == (Lane.BULK, State.QUEUED)
    world.runtime.sleep(ms(world.timing.small.visibility))
    return world, job, ids, receive(world, Lane.SMALL)


@pytest.mark.parametrize("state", UNFINISHED)
@pytest.mark.parametrize("expired", [False, True])
def test_c71_a_message_of_another_lane_is_deleted_whatever_its_jobs_state(
    state: State, *, expired: bool
) -> None:
    world, job, ids, delivery = promoted()
    if state in {State.RUNNING, State.CANCELLING, State.PAUSING}:
        job = begin(world, job, "bulk")
        ask = {State.CANCELLING: control.cancel, State.PAUSING: control.pause}.get(state)
        if ask:
            ask(world, TENANT, job.id)
    elif state is State.PAUSED:
        control.pause(world, TENANT, job.id)
    if expired:
        world.runtime.sleep(ms(world.timing.bulk.lease_ttl) + 1)
    before = (world.store.snapshot(), world.queues[Lane.BULK].snapshot())
    decision = on_message(world, delivery, Worker("fn", deadline=world.runtime.now() + SECOND))
    assert isinstance(decision, DeleteMessage)
    assert decision.receipt is None
    assert before == (world.store.snapshot(), world.queues[Lane.BULK].snapshot())
    apply_decision(world.queues[Lane.SMALL], delivery, decision)
    if state is State.PAUSED:
        control.resume(world, TENANT, job.id)
    minutes(world)
    wanted = {State.CANCELLING: State.CANCELLED, State.PAUSING: State.PAUSED}
    assert now(world, job).state is wanted.get(state, State.SUCCEEDED)
    assert prices(world, ids) == ({10} if state in wanted else {11})


@pytest.mark.parametrize("lane", Lane)
def test_c71_a_deadline_holds_in_every_lane(lane: Lane) -> None:
    """A worker that will be killed leaves the job before that, whatever the job's lane."""
    world = chunked()
    count = WORK if lane is Lane.SMALL else 110
    job = new_job(world, fill(world, count))
    assert job.lane is lane
    assert run_next(world, lane, deadline=world.runtime.now()).why == "out_of_time"
    left = now(world, job)
    assert (left.state, left.lane, left.position) == (State.QUEUED, Lane.BULK, 0)
    assert run_next(world, Lane.BULK).why == "succeeded"
