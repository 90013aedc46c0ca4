"""Records and checkpoint move together, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import Transaction
from handlers.jobs.transitions.chunk_commit import commit_chunk, id_list_written, total_known
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.job import Job
from handlers.jobs.words.writes import Item, Key, Update
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, prices, write


def a_chunk(world: MemoryWorld, job: Job, ids: list[str]) -> Transaction:
    """All records of the job in one chunk."""
    records = [
        world.records.change(record, {"price": 11}, job.id)
        for record in world.records.read(TENANT, ids).values()
    ]
    after = job.model_copy(update={"position": 3, "cursor": 3, "succeeded": 2, "failed": 1})
    outcomes: dict[str, Item] = {"failed": {"failed": [{"id": ids[0], "reason": "no"}]}}
    return commit_chunk(world, job, after, records=records, outcomes=outcomes)


def begun() -> tuple[MemoryWorld, Job, list[str]]:
    world = memory_world()
    ids = fill(world, 3)
    return world, begin(world, new_job(world, ids)), ids


def test_records_checkpoint_counts_and_outcomes_are_one_write() -> None:
    world, job, ids = begun()
    chunk = a_chunk(world, job, ids)
    assert not chunk.applied(world)
    write(world, chunk)
    assert chunk.applied(world)
    after = now(world, job)
    assert (after.position, after.succeeded, after.failed) == (3, 2, 1)
    assert prices(world, ids) == {11}
    assert world.store.get(control_table.outcome_key(job.id, "failed", 0)) is not None


@pytest.mark.parametrize("moved", ["lease", "state", "position", "record"])
def test_what_moved_since_refuses_the_whole_chunk(moved: str) -> None:
    world, job, ids = begun()
    chunk = a_chunk(world, job, ids)
    record = world.records.read(TENANT, ids)[ids[1]]
    moves = {
        "lease": Update(control_table.lease_key(TENANT, job.subject), set={"fence": 99}),
        "state": Update(control_table.job_key(job.id), set={"state": "CANCELLING"}),
        "position": Update(control_table.job_key(job.id), set={"position": 1}),
        "record": world.records.change(record, {"name": "x"}, "another"),
    }
    world.store.transact("moves", [moves[moved]])
    before = world.store.snapshot()
    with pytest.raises(Refused):
        write(world, chunk)
    assert world.store.snapshot() == before
    assert prices(world, ids) == {10}


def test_a_list_is_written_once_and_by_the_attempt_that_runs() -> None:
    world, job, _ = begun()
    first = id_list_written(world, job, payload="ids/1", total=3, duplicates=1)
    write(world, first.transaction)
    found = now(world, job)
    assert (found.payload, found.total, found.duplicates) == ("ids/1", 3, 1)
    assert first.transaction.applied(world)
    second = id_list_written(world, job, payload="ids/2", total=3, duplicates=1)
    assert not second.transaction.applied(world)
    with pytest.raises(Refused):
        write(world, second.transaction)


@pytest.mark.parametrize("moved", [{"position": 1}, {"fence": 99}, {"state": "PAUSING"}])
def test_the_end_of_a_walk_is_called_by_who_is_there(moved: dict[str, Any]) -> None:
    world, job, _ = begun()
    end = total_known(world, job).transaction
    key: Key = control_table.job_key(job.id)
    world.store.transact("moves", [Update(key, set=moved)])
    with pytest.raises(Refused):
        write(world, end)
