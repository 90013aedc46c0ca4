"""Jobs with results to list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handlers.jobs.storage.control_table import OUTCOME_ROWS
from handlers.jobs.words.limits import Limits
from handlers.testing.world import MemoryWorld, memory_world

from .jobs import TENANT, fill, new_job, now, run_next

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job


def stored_results(world: MemoryWorld, job_id: str, outcome: str) -> list[dict[str, str]]:
    """The entries of all rows of the outcome, as they are stored."""
    rows: Any = world.store.query_partition(f"JOB#{job_id}", sk_prefix=OUTCOME_ROWS[outcome]).found
    return [dict(entry) for row in rows for entry in row.item[outcome]]


def a_job(*, failing: int, chunk: int) -> tuple[MemoryWorld, Job]:
    """An ended job of ten records, of which the first so many failed; so many to a chunk."""
    world = memory_world(limits=Limits(chunk_size=chunk))
    ids = fill(world, 10)
    world.records.load(TENANT, {id_: {"price": "none", "version": 1} for id_ in ids[:failing]})
    job = new_job(world, ids)
    run_next(world)
    return world, now(world, job)
