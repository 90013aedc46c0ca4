"""Conditions of the worker's own writes: begin, beat, receipt, chunk, id list, letting go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle.rollout import left_to_newer
from handlers.jobs.transitions.attempt import begin_attempt, renew_lease, say_hung, store_receipt
from handlers.jobs.transitions.chunk_commit import commit_chunk, id_list_written, total_known
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.states import State
from handlers.testing.world import SHORT, memory_world
from tests.support.guards import (
    GONE,
    Asked,
    Case,
    Setup,
    absent,
    accept,
    by_name,
    check,
    lost_lease,
    moved_job,
    not_covered,
    refuse,
    sends,
)
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld


def running() -> tuple[MemoryWorld, Job]:
    world = memory_world()
    return world, begin(world, new_job(world, fill(world, 3)))


def begin_queued() -> Setup:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    begun = begin_attempt(world, job, worker="w", receipt="r", expired=None)
    return sends(world, begun)


def begin_expired() -> Setup:
    world, job = running()
    lease = lease_of(world, job)
    begun = begin_attempt(world, job, worker="w", receipt="r", expired=lease)
    return sends(world, begun)


def beat() -> Setup:
    world, job = running()
    return sends(world, renew_lease(world, job))


def receipt() -> Setup:
    world, job = running()
    return sends(world, store_receipt(job, "r2"))


def hang() -> Setup:
    world, job = running()
    return sends(world, say_hung(job, "it hangs"))


def left_to_a_newer_worker() -> Setup:
    world = memory_world(timing=SHORT.model_copy(update={"rollout": 900}))
    job = new_job(world, fill(world, 3))
    read = {"state": job.state.value, "fence": job.fence}
    return Setup(world, "not_understood", lambda: left_to_newer(world, job.id, read, "unknown"))


def chunk() -> Setup:
    world, job = running()
    record = world.records.read(TENANT, ["r0000"])["r0000"]
    write = world.records.change(record, {"price": 11}, job.id)
    after = job.model_copy(update={"position": 1, "cursor": 1, "succeeded": 1})
    return sends(world, commit_chunk(world, job, after, records=[write], outcomes={}))


def chunk_of_an_unversioned_record() -> Setup:
    world, job = running()
    world.records.load(TENANT, {"plain": {"price": 10}})
    record = world.records.read(TENANT, ["plain"])["plain"]
    write = world.records.remove(record, job.id)
    after = job.model_copy(update={"position": 1, "cursor": 1, "succeeded": 1})
    return sends(world, commit_chunk(world, job, after, records=[write], outcomes={}))


def id_list() -> Setup:
    world, job = running()
    written = id_list_written(world, job, payload="list", total=3, duplicates=0)
    return sends(world, written)


def walked() -> Setup:
    world, job = running()
    return sends(world, total_known(world, job.model_copy(update={"total": None})))


def let_go() -> Setup:
    world, job = running()
    return sends(world, release_attempt(world, job, Release(give_back=True)))


SETUPS: Final = by_name(
    begin_queued,
    begin_expired,
    beat,
    receipt,
    hang,
    left_to_a_newer_worker,
    chunk,
    chunk_of_an_unversioned_record,
    id_list,
    walked,
    let_go,
)

CASES: Final[list[Case]] = [
    *lost_lease("begin queued"),
    *moved_job("begin queued"),
    *lost_lease("begin expired"),
    refuse("begin expired", "LEASE", expires_at=Asked(1)),
    refuse("begin expired", "LEASE", expires_at=Asked(-1)),
    *moved_job("begin expired"),
    *lost_lease("beat"),
    accept("beat", "LEASE", expires_at=0),
    refuse("receipt", "JOB", state=State.QUEUED.value),
    refuse("receipt", "JOB", fence=Asked(1)),
    accept("receipt", "JOB", position=1),
    refuse("hang", "JOB", state=State.CANCELLING.value),
    refuse("hang", "JOB", fence=Asked(1)),
    refuse("left to a newer worker", "JOB", state=State.RUNNING.value),
    refuse("left to a newer worker", "JOB", fence=Asked(1)),
    refuse("left to a newer worker", "JOB", not_understood_since=1),
    *lost_lease("chunk"),
    refuse("chunk", "JOB", state=State.CANCELLING.value),
    refuse("chunk", "JOB", state=State.PAUSING.value),
    refuse("chunk", "JOB", position=Asked(1)),
    accept("chunk", "JOB", receipt="another"),
    refuse("chunk", "r0000", version=Asked(1)),
    refuse("chunk", "r0000", version=Asked(-1)),
    accept("chunk", "r0000", last_job_id="another job's"),
    refuse("chunk", "r0000", last_job_id=Asked(0)),
    absent("chunk", "r0000", refused=True),
    *lost_lease("chunk of an unversioned record"),
    refuse("chunk of an unversioned record", "JOB", state=State.CANCELLING.value),
    refuse("chunk of an unversioned record", "JOB", position=Asked(1)),
    refuse("chunk of an unversioned record", "plain", version=1),
    accept("chunk of an unversioned record", "plain", version=0),
    refuse("chunk of an unversioned record", "plain", last_job_id=Asked(0)),
    absent("chunk of an unversioned record", "plain", refused=True),
    *lost_lease("id list"),
    refuse("id list", "JOB", state=State.PAUSING.value),
    refuse("id list", "JOB", fence=Asked(1)),
    refuse("id list", "JOB", payload="another"),
    *lost_lease("walked"),
    refuse("walked", "JOB", state=State.CANCELLING.value),
    refuse("walked", "JOB", fence=Asked(1)),
    refuse("walked", "JOB", position=Asked(1)),
    *lost_lease("let go"),
    *moved_job("let go"),
    accept("let go", "LEASE", expires_at=GONE),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_c80_a_write_of_a_worker_needs_its_conditions(case: Case) -> None:
    check(SETUPS, case)


def test_c80_each_condition_of_a_worker_s_write_has_a_case() -> None:
    assert not_covered(SETUPS, CASES) == []
