"""Writing an id list stops when the attempt has to, and ends as its job does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.id_list import CHECK_EVERY, _IdListWriter
from handlers.jobs.execution.stopping import StopReason, StopRequested
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import OwnershipLost
from handlers.jobs.words.writes import Update
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, new_job

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld


def running() -> tuple[MemoryWorld, Job]:
    world = memory_world()
    return world, begin(world, new_job(world, fill(world, 1)))


@pytest.mark.parametrize(("ids", "looks"), [(CHECK_EVERY - 1, 0), (CHECK_EVERY, 1)])
def test_the_list_is_interrupted_every_so_many_ids(ids: int, looks: int) -> None:
    world, job = running()
    looked: list[str] = []
    writer = _IdListWriter(world, job, lambda job: looked.append(job.id))
    assert sum(1 for _ in writer._checking_stop(["a"] * ids)) == ids
    assert len(looked) == looks


def test_the_attempt_s_own_stop_is_told() -> None:
    world, job = running()
    with pytest.raises(StopRequested) as raised:
        _IdListWriter(world, job, lambda _: StopReason.SHUTDOWN)._check_stop()
    assert raised.value.loop_end.stop is StopReason.SHUTDOWN


def test_a_lost_lease_goes_before_what_the_job_was_asked_for() -> None:
    for job_id, expected in (("other", OwnershipLost), ("", StopRequested)):
        world, job = running()
        asked = Update(control_table.job_key(job.id), set={"state": "CANCELLING"})
        world.store.transact("asked", [asked])
        if job_id:
            key = control_table.lease_key(TENANT, job.subject)
            world.store.transact("taken", [Update(key, set={"job_id": job_id})])
        writer = _IdListWriter(world, job, lambda _: None)
        with pytest.raises(expected):
            writer._commit("ids", 1, 0)
