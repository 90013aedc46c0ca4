"""Cases about what a job says of its end, and of what it waits for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pytest

from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.errors import Denied, Transient
from handlers.jobs.words.event import EVENT_BUS
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, MINUTE
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import fill, new_job, now, receive, run_next
from tests.support.listeners import Ear
from tests.support.process import Killed, process

SECRET: Final = "arn:aws:dynamodb:eu-west-1:123456789012:table/records"


class Broken(MemoryRecordStore):
    """Records whose every read raises."""

    def __init__(self, world: MemoryWorld, error: Exception) -> None:
        super().__init__(world.store)
        self._error = error

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        raise self._error


def until_it_ends(world: MemoryWorld, job: Job, work: Callable[[], object]) -> Job:
    for _ in range(200):
        if world.queues[Lane.SMALL].snapshot():
            world.runtime.sleep(HOUR)
            Recovery(world).run()
            work()
        if (found := now(world, job)).state.terminal:
            return found
    raise AssertionError(f"the job goes on: {now(world, job)}")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError(SECRET), "the worker met an unexpected error (RuntimeError)"),
        (Transient(SECRET), "a service that the job needs refused a call or did not answer"),
        (Denied(SECRET), "the deployment lacks a permission that the job needs"),
    ],
    ids=["a bug", "a dependency", "a permission"],
)
def test_c74_a_job_without_attempts_names_the_cause_of_the_last_one(
    error: Exception, said: str
) -> None:
    bus = Ear()
    world = replace(memory_world(limits=Limits(max_retries=2)), listeners={EVENT_BUS: bus})
    job = new_job(world, fill(world, 3))
    broken = replace(world, records=Broken(world, error))
    run_next(broken)
    waiting = now(world, job)
    assert (waiting.state, waiting.message) == (State.QUEUED, said)
    ended = until_it_ends(world, job, lambda: run_next(broken))
    assert ended.end_reason is EndReason.ATTEMPTS_EXHAUSTED
    assert ended.message == f"{ended.attempt} attempts ended early, the last one: {said}"
    told = json.loads(bus.heard[-1].detail)["job"]
    assert told["message"] == ended.message
    assert SECRET not in json.dumps([told, ended.message])


@pytest.mark.parametrize("by_recovery", [False, True])
def test_c74_a_job_whose_workers_die_says_so(*, by_recovery: bool) -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    here, store = process(world)

    def die(action: str) -> None:
        if action == "commit_chunk":
            raise Killed

    store.before = die

    def work() -> None:
        delivery = receive(world, Lane.SMALL)
        if now(world, job).attempt < world.timing.small.max_attempts:
            with pytest.raises(Killed):
                on_message(here, delivery, Worker("dies"))
        elif by_recovery:
            world.queues[Lane.SMALL].delete(delivery.receipt)
            world.runtime.sleep(HOUR)
            Recovery(world).run()
        else:
            on_message(here, delivery, Worker("last"))

    ended = until_it_ends(world, job, work)
    assert ended.end_reason is EndReason.ATTEMPTS_EXHAUSTED
    assert ended.message.endswith("the last one: its worker stopped without a word")


def test_c74_a_missing_permission_is_waited_for_and_costs_no_attempt() -> None:
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids)
    denied = replace(world, records=Broken(world, Denied()))
    for _ in range(world.timing.small.max_attempts + 3):
        run_next(denied)
        world.runtime.sleep(10 * MINUTE)
        Recovery(world).run()
    waiting = now(world, job)
    assert (waiting.state, waiting.attempt) == (State.QUEUED, 0)
    assert world.telemetry.total(Metric.DENIED) > world.timing.small.max_attempts
    run_next(world)
    ended = now(world, job)
    assert (ended.state, ended.message) == (State.SUCCEEDED, "")
