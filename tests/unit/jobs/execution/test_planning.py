"""What becomes of each record of a chunk before anything is written."""

from __future__ import annotations

from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, fill, new_job, now, run_next


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
