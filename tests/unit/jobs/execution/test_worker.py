"""One job's life through the rules, on the in-memory world."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Busy, Created
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, create, fill, new_job, now, prices, run_next

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.words.messages import Message
    from handlers.testing.job_store import MemoryStore
    from handlers.testing.runtime import ManualRuntime


@pytest.mark.parametrize(
    ("count", "lane"),
    [(1, Lane.SMALL), (100, Lane.SMALL), (101, Lane.BULK), (5000, Lane.BULK)],
)
def test_a_job_changes_every_record_once_and_frees_everything(count: int, lane: Lane) -> None:
    world = memory_world()
    ids = fill(world, count)
    job = new_job(world, ids)
    assert job.lane is lane
    assert isinstance(run_next(world, lane), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.succeeded, ended.position) == (State.SUCCEEDED, count, count)
    assert prices(world, ids) == {11}
    lease = read_lease(world, ended)
    assert lease is not None
    assert lease.job_id is None
    assert world.store.get(control_table.slots_key(TENANT, lane)) == {"in_flight": 0}
    assert not world.payloads.names()
    assert not world.queues[lane].snapshot()


def test_a_taken_subject_is_refused_and_nothing_is_left() -> None:
    world = memory_world()
    ids = fill(world, 3)
    first = new_job(world, ids)
    before = world.store.snapshot(), len(world.queues[Lane.SMALL].snapshot())
    assert create(world, ids) == Busy(first.id, State.QUEUED)
    assert (world.store.snapshot(), len(world.queues[Lane.SMALL].snapshot())) == before


def test_records_that_fail_are_reported_and_their_neighbours_done() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 30)
    world.records.load(TENANT, {"r0017": {"price": "not a number", "version": 1}})
    job = new_job(world, [*ids, "missing"])
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.succeeded, ended.failed, ended.skipped) == (29, 1, 1)
    rows = world.store.query_partition(f"JOB#{job.id}", sk_prefix="OUTCOME#").found
    listed = [
        entry["id"]
        for row in rows
        for kind in row.item.values()
        if isinstance(kind, list)
        for entry in kind
    ]
    assert listed == ["r0017", "missing"]


def test_a_stop_gives_the_attempt_back_and_the_next_worker_goes_on() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 40)
    job = new_job(world, ids)
    looks = iter([False, False, True])
    decision = run_next(world, Lane.SMALL, stopping=lambda: next(looks))
    assert isinstance(decision, KeepMessage)
    assert decision.seconds == 0
    stopped = now(world, job)
    assert (stopped.state, stopped.position, stopped.attempt) == (State.QUEUED, 20, 0)
    assert isinstance(create(world, ids), Busy)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}


def test_a_small_job_out_of_time_goes_on_in_the_bulk_lane() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 40)
    job = new_job(world, ids)
    run_next(world, Lane.SMALL, deadline=world.runtime.now() + 100)
    promoted = now(world, job)
    assert (promoted.lane, promoted.state, promoted.attempt) == (Lane.BULK, State.QUEUED, 0)
    assert not world.queues[Lane.SMALL].snapshot()
    run_next(world, Lane.BULK)
    assert now(world, job).state is State.SUCCEEDED
    for lane in Lane:
        assert world.store.get(control_table.slots_key(TENANT, lane)) == {"in_flight": 0}


def test_cancel_pause_resume_and_retry() -> None:
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids)
    paused = control.pause(world, TENANT, job.id)
    assert isinstance(paused, Job)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.PAUSED
    assert isinstance(control.cancel(world, "other", job.id), control.NoSuchJob)
    resumed = control.resume(world, TENANT, job.id)
    assert isinstance(resumed, Job)
    assert isinstance(control.cancel(world, TENANT, job.id), Job)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.CANCELLED
    assert isinstance(control.cancel(world, TENANT, job.id), control.NotPossible)
    assert prices(world, ids) == {10}
    assert isinstance(create(world, ids), Created)


def test_a_failed_job_is_retried_from_its_checkpoint() -> None:
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids, tolerated_failure_percent=0, params={"field": "weight", "add": 1})
    run_next(world, Lane.SMALL)
    failed = now(world, job)
    assert (failed.state, failed.end_reason) == (State.FAILED, EndReason.TOO_MANY_FAILED)
    retried = control.retry(world, TENANT, job.id)
    assert isinstance(retried, Job)
    assert retried.fence > failed.fence


def test_jobs_over_the_tenants_limit_are_held_and_admitted_in_order() -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    ids = fill(world, 3)
    jobs = [new_job(world, ids, subject=f"s{n}") for n in range(3)]
    assert [job.held for job in jobs] == [False, True, True]
    for job in jobs:
        run_next(world, Lane.SMALL)
        assert now(world, job).state is State.SUCCEEDED
    assert world.store.get(control_table.slots_key(TENANT, Lane.SMALL)) is not None


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


def _deaf(world: MemoryWorld) -> MemoryWorld:
    """The same world, with queues that accept nothing."""
    return replace(world, queues={lane: _DeafQueue(world.runtime) for lane in Lane})


class _DeafQueue(MemoryLaneQueue):
    def __init__(self, runtime: ManualRuntime) -> None:
        super().__init__(runtime, name="deaf", visibility=1, retention=60)

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        raise Transient(f"{len(messages)} not sent")


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
