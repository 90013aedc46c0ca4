"""What a delivery finds when its job moves, is superseded or ends, one condition at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, LookAgain, RunAttempt
from handlers.jobs.execution.delivery import _DeliveryCheck, _JobMoved
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import Rejected
from handlers.jobs.transitions.conditions import JOB, LEASE
from handlers.jobs.words.errors import Reason, Transient, Why
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.messages import read_pointer
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, receive

if TYPE_CHECKING:
    from handlers.jobs.words.timing import Timing

CHANGED = Reason(Why.CONDITION)


def check(
    *, runs: bool = True, timing: Timing = SHORT, **delivery: int
) -> tuple[MemoryWorld, Job, _DeliveryCheck, list[int]]:
    """A job, running or queued, a delivery of its message, and the starts that are reported."""
    world = memory_world(timing=timing)
    job = new_job(world, fill(world, 1))
    job = begin(world, job) if runs else job
    found = replace(receive(world, Lane.SMALL), **delivery)  # type: ignore[arg-type]  # numbers
    starts: list[int] = []
    worker = Worker("w", started=starts.append)
    return world, job, _DeliveryCheck(world, found, worker, read_pointer(found.body)), starts


def put(world: MemoryWorld, job: Job, **attributes: int | str) -> Job:
    world.store.transact("put", [Update(control_table.job_key(job.id), set=attributes)])
    return now(world, job)


def lease_is(world: MemoryWorld, job: Job, *gone: str, **attributes: int | str) -> None:
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("lease", [Update(key, set=attributes, remove=gone)])


@pytest.mark.parametrize(
    ("state", "ended"), [(State.RUNNING, State.FAILED), (State.CANCELLING, State.CANCELLED)]
)
def test_a_superseded_job_ends_as_it_was_asked_to(state: State, ended: State) -> None:
    world, job, made, _ = check()
    assert isinstance(made._superseded(put(world, job, state=state.value)), DeleteMessage)
    after = now(world, job)
    assert after.state is ended
    assert after.end_reason is (EndReason.SUPERSEDED if ended is State.FAILED else None)


def test_a_pausing_job_is_superseded_by_nobody() -> None:
    world, job, made, _ = check()
    job = put(world, job, state="PAUSING")
    before = world.store.snapshot()
    with pytest.raises(_JobMoved):
        made._superseded(job)
    assert world.store.snapshot() == before


def test_a_job_between_two_attempts_is_read_again() -> None:
    world, job, made, _ = check()
    lease_is(world, job, fence=job.fence + 1)
    with pytest.raises(_JobMoved):
        made._active(job)
    lease_is(world, job, "expires_at", fence=job.fence)
    with pytest.raises(_JobMoved):
        made._active(job)


@pytest.mark.parametrize(
    ("role", "lease", "job", "superseded"),
    [
        (JOB, {"job_id": "other"}, {}, False),
        (LEASE, {}, {}, False),
        (LEASE, {"job_id": "other"}, {}, True),
        (LEASE, {"job_id": "other"}, {"state": "CANCELLING"}, False),
        (LEASE, {"job_id": "other"}, {"fence": 1}, False),
    ],
)
def test_a_begin_that_is_refused_means_another_holder_when_the_job_is_as_it_was_read(
    role: str, lease: dict[str, int | str], job: dict[str, int | str], *, superseded: bool
) -> None:
    world, read, made, _ = check()
    if lease:
        lease_is(world, read, **lease)
    if job:
        put(world, read, **job)
    rejected = Rejected("begin", {role: CHANGED})
    if superseded:
        assert isinstance(made._not_begun(read, rejected), DeleteMessage)
        assert now(world, read).end_reason is EndReason.SUPERSEDED
    else:
        with pytest.raises(_JobMoved):
            made._not_begun(read, rejected)
        assert not now(world, read).state.terminal


def test_a_job_whose_lease_is_gone_is_superseded() -> None:
    world, job, made, _ = check()
    lease_is(world, job, "job_id")
    assert isinstance(made._not_begun(job, Rejected("begin", {LEASE: CHANGED})), DeleteMessage)
    assert now(world, job).end_reason is EndReason.SUPERSEDED


@pytest.mark.parametrize("fails", [True, False])
def test_a_message_is_looked_at_again_until_the_list_is_deleted(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    world, job, made, _ = check()
    job = put(world, job, state="CANCELLING", payload="list")

    def delete(_name: str) -> None:
        if fails:
            raise Transient("down")

    monkeypatch.setattr(world.payloads, "delete", delete)
    assert isinstance(made._superseded(job), LookAgain if fails else DeleteMessage)


def test_a_job_whose_retry_is_due_this_moment_begins() -> None:
    for wait, begins in ((0, True), (1, False)):
        world, job, made, _ = check(runs=False)
        job = put(world, job, retry_at=world.runtime.now() + wait)
        assert isinstance(made._queued(job), RunAttempt) is begins


@pytest.mark.parametrize("rollout", [0, 60])
def test_a_job_that_is_not_understood_is_left_to_newer_workers_while_there_may_be_some(
    rollout: float,
) -> None:
    world, job, made, _ = check(runs=False, timing=SHORT.model_copy(update={"rollout": rollout}))
    job = put(world, job, operation="unknown")
    found = made._not_understood(job, None)
    if not rollout:
        assert found is None
        return
    assert isinstance(found, LookAgain)
    assert isinstance(made._begin(now(world, job), None), LookAgain)
    world.runtime.sleep(60_000)
    assert isinstance(made._not_understood(now(world, job), None), DeleteMessage)
    assert now(world, job).end_reason is EndReason.UNKNOWN_OPERATION


@pytest.mark.parametrize(
    ("lane", "receives", "started_before", "reported", "waited"),
    [
        (Lane.SMALL, 1, False, 1, 1),
        (Lane.SMALL, 2, False, 1, 0),
        (Lane.BULK, 1, False, 0, 1),
        (Lane.SMALL, 1, True, 0, 0),
    ],
)
def test_the_first_start_is_measured(
    lane: Lane,
    receives: int,
    started_before: bool,  # noqa: FBT001  a parameter of the test
    reported: int,
    waited: int,
) -> None:
    world, job, made, starts = check(receive_count=receives)
    job = job.model_copy(update={"lane": lane})
    before = job.model_copy(update={"started_at": job.started_at if started_before else None})
    made._measure_start(before, job)
    measured = [each.metric for each in world.telemetry.durations]
    assert len(starts) == reported
    assert measured.count(Metric.QUEUE_DWELL) == waited
    assert measured.count(Metric.DWELL) == (not started_before)
