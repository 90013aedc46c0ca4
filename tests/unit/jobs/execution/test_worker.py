"""One job's life through the rules, on the in-memory world."""

from __future__ import annotations

import pytest

from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, fill, new_job, now, prices, run_next


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
