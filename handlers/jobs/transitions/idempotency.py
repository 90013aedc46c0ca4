"""The rows that keep a new job unique: one job for a request, one retry of a job.

They are written in the transaction that creates the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..words.states import TERMINAL
from ..words.timing import SECOND
from ..words.writes import AnyOf, AtMost, Equals, Missing, Put, Update

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import World
    from ..words.writes import Item, Write

REQUEST: Final = "request"
RETRIED: Final = "retried"
REMEMBERED: Final = 24 * 3600
"""Seconds a request with an Idempotency-Key is remembered."""


def uniqueness_rows(world: World, job: Job) -> dict[str, Write]:
    """The writes, by role."""
    return {**_request_of(world, job), **_retry_of(job)}


def _request_of(world: World, job: Job) -> dict[str, Write]:
    """The row that says which job a request made, for as long as the request is remembered."""
    if job.idempotency is None:
        return {}
    now = world.runtime.now() // SECOND
    # Never longer than the job itself can be read.
    until = now + min(REMEMBERED, world.timing.history)
    unknown = AnyOf((Missing("job_id"), AtMost("expires_at_seconds", now)))
    row: Item = {"job_id": job.id, "expires_at_seconds": until}
    return {REQUEST: Put(control_table.request_key(job.idempotency), row, when=(unknown,))}


def _retry_of(job: Job) -> dict[str, Write]:
    """Marks the old job as retried, so that it is retried once: a second retry would change again
    what the first one mended. Closes: two retries at once, one of a job that went on."""
    if job.retry_of is None:
        return {}
    ended = AnyOf(tuple(Equals("state", state.value) for state in sorted(TERMINAL)))
    return {
        RETRIED: Update(
            control_table.job_key(job.retry_of),
            set={"retried_by": job.id},
            when=(Missing("retried_by"), ended),
        )
    }
