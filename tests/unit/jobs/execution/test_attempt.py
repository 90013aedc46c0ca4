"""One attempt at a job: what it costs, and what it may conclude."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.effects.runner import EffectRunner
from handlers.jobs.execution.attempt import LOST, _Attempt
from handlers.jobs.execution.decisions import KeepMessage
from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.turns import Turn
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.errors import JobFailed, Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import begin, fill, new_job, now, prices, receive, run_next

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.words.ports import Delivery
    from handlers.testing.job_store import MemoryStore


def run_once(world: MemoryWorld) -> None:
    """Run the small lane's message when it is back; recovery sends what has to be sent."""
    world.runtime.sleep(600_000)
    Recovery(world).run()
    run_next(world, Lane.SMALL)


class Unreadable(MemoryRecordStore):
    def __init__(self, store: MemoryStore, error: Exception) -> None:
        super().__init__(store)
        self.error = error

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        raise self.error


def attempt_of(world: MemoryWorld, job: Job, delivery: Delivery, worker: str) -> _Attempt:
    heart = Heartbeat(world, job, delivery)
    runner = EffectRunner(world, job.lane)
    turn = Turn(world, job, contended=False)
    return _Attempt(world, delivery, Worker(worker), heart, runner, turn, start=job.position)


def test_a_dependency_that_is_down_costs_time_and_a_crash_costs_an_attempt() -> None:
    world = memory_world(limits=Limits(max_retries=2))
    ids = fill(world, 3)
    job = new_job(world, ids)
    down = replace(world, records=Unreadable(world.store, Transient("down")))
    for retries, attempts in ((1, 0), (2, 0), (3, 1), (4, 2)):
        run_once(down)
        waiting = now(world, job)
        assert (waiting.state, waiting.retries, waiting.attempt) == (
            State.QUEUED,
            retries,
            attempts,
        )
    run_once(replace(world, records=Unreadable(world.store, RuntimeError("bug"))))
    assert now(world, job).attempt == 3
    run_once(world)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}


@pytest.mark.parametrize("result", [Transient("down"), JobFailed(EndReason.PAYLOAD_GONE)])
def test_an_attempt_that_was_replaced_does_not_conclude_for_its_successor(
    result: Transient | JobFailed,
) -> None:
    world = memory_world()
    old = begin(world, new_job(world, fill(world, 3)))
    delivery = receive(world, Lane.SMALL)
    world.runtime.sleep(5000)
    successor = begin(world, old, worker="w2")
    before = world.store.snapshot()
    assert attempt_of(world, old, delivery, "w1").conclude(old, result) == LOST
    assert world.store.snapshot() == before
    assert now(world, old) == successor


def test_an_attempt_whose_job_was_ended_by_somebody_else_concludes_nothing() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    delivery = receive(world, Lane.SMALL)
    end_job(world, job, Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED))
    failed = JobFailed(EndReason.PAYLOAD_GONE)
    assert attempt_of(world, job, delivery, "w1").conclude(job, failed) == LOST


@pytest.mark.parametrize("fails", [None, Transient("down")], ids=["it goes on", "it fails"])
def test_an_attempt_whose_job_it_cannot_decode_any_more_leaves_it_to_others(
    fails: Exception | None,
) -> None:
    """A newer version has changed the item meanwhile: no word of this one may overwrite it."""
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids)
    newer = Update(control_table.job_key(job.id), set={"retries": "many", "state": "PAUSING"})

    class Changed(MemoryRecordStore):
        def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
            world.store.transact("newer version", [newer])
            if fails is not None:
                raise fails
            return super().read(tenant, ids)

    delivery = receive(world, Lane.SMALL)
    there = replace(world, records=Changed(world.store))
    assert on_message(there, delivery, Worker("w1")) == KeepMessage("dependency", None)
    item = world.store.get(control_table.job_key(job.id)) or {}
    assert (item["state"], item["position"], item["retries"]) == ("PAUSING", 0, "many")
    assert "attempt_crashed" not in world.telemetry.actions()
