"""Trying the failed records of an ended job again: by a job of their own.

The old job keeps its counts, and no count ever falls; the new one changes each of its records at
most once, like any job. A record that failed was not changed by the old job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..results.items import ItemOutcome, item_results
from ..selection.id_sources import lines
from ..selection.permuted import distinct
from ..selection.resolve import lane_for
from ..selection.tables import renew_tables
from ..storage.transaction import retry_transient
from ..transitions.enqueue import first_fence
from ..words.errors import JobFailed
from ..words.job import Job, Traversal
from ..words.states import State
from .control import NoSuchJob, NotPossible, Unchanged, find
from .submit import Created, submit_prepared

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..words.ports import World
    from .control import Answer


def retry_failed(
    world: World, tenant: str, job_id: str, out_of_time: Callable[[], bool], by: str = ""
) -> Answer:
    """The new job over the failed records, or the one that was made before. by: the verified
    caller, who is the new job's creator.

    Raises Unfinished when there is no time to read them all, Transient, Undecodable; then nothing
    was made."""
    old = find(world, tenant, job_id)
    if old is None:
        return NoSuchJob()
    if old.retried_by is not None:
        made = find(world, tenant, old.retried_by)
        if made is not None:
            return Unchanged(made)
        return NotPossible(
            old, "an earlier request has already created a job over its failed records"
        )
    if (why := _why_not(old)) is not None:
        return NotPossible(old, why)
    try:
        renew_tables(world, old)
    except JobFailed as error:
        return NotPossible(old, str(error))
    result = submit_prepared(world, _with_ids(world, _retry_of(world, old, by), old, out_of_time))
    return result.job if isinstance(result, Created) else result


def _why_not(old: Job) -> str | None:
    if not old.state.terminal:
        return "its failed records can be tried again when it has ended"
    if old.failed == 0:
        return "none of its records failed"
    if old.state is State.FAILED and old.position != old.total:
        return "it failed before its last record; retry the whole job first"
    return None


def _retry_of(world: World, old: Job, by: str) -> Job:
    now = world.runtime.now()
    return Job(
        id=f"{now:012x}{world.runtime.token()}",
        tenant=old.tenant,
        subject=old.subject,
        operation=old.operation,
        params=old.params,
        tables=old.tables,
        lane=lane_for(old.failed, world.limits),
        state=State.QUEUED,
        # A record is checked against the query again, as it was the first time.
        query=old.query,
        traversal=None if old.query is None else Traversal.SNAPSHOT,
        tolerated_failure_percent=old.tolerated_failure_percent,
        stop_when_hopeless=old.stop_when_hopeless,
        labels=old.labels,
        notify=old.notify,
        created_by=by,
        fence=first_fence(world),
        created_at=now,
        retry_of=old.id,
    )


def _with_ids(world: World, job: Job, old: Job, out_of_time: Callable[[], bool]) -> Job:
    name = f"ids/{job.id}"
    counted: list[int] = []

    def write() -> int:
        failed = item_results(world, old, ItemOutcome.FAILED, out_of_time)
        ids = distinct((result.id for result in failed), job.id, permute=world.limits.permute_ids)
        size = world.payloads.put(name, lines(ids))
        counted[:] = [ids.total]
        return size

    retry_transient(world, write)
    return job.model_copy(update={"payload": name, "total": counted[0]})
