"""The transaction by which an attempt ends before its job does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..storage import control_table
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, Transition, job_is
from ..words.job import Job, Lane, Waiting
from ..words.states import State
from ..words.timing import ms
from ..words.writes import Update
from .conditions import DISPATCH, JOB, LEASE, job_as_read, owns_lease
from .enqueue import dispatch_row
from .quotas import IN_FLIGHT

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import Write


@dataclass(frozen=True)
class Release:
    """How an attempt ends before its job does."""

    give_back: bool
    """The attempt does not count."""
    retry_at: int | None = None
    """Not before (ms)."""
    reason: Waiting | None = None
    """Why the job waits from now on; None: for a worker of its lane, or until ``retry_at``."""
    retries: int | None = None
    """The new count of releases for a dependency without progress; None leaves the count."""
    cause: str = ""
    """What it waits for, in words for the client; empty when it only goes on elsewhere."""
    fresh_message: bool = False
    """Go on with a new message instead of this delivery's."""
    lane: Lane | None = None
    """Promote to another lane (implies fresh_message)."""


def release_attempt(world: World, job: Job, how: Release) -> Transition:
    """RUNNING to QUEUED: the attempt ends, the subject stays taken without an expiry.

    The fence rises. Closes: releasing a job that was taken over or cancelled meanwhile, a beat that
    arrives late and gives the lease an expiry again.
    """
    after = job.model_copy(
        update={
            "state": State.QUEUED,
            "fence": job.fence + 1,
            "attempt": job.attempt - 1 if how.give_back else job.attempt,
            "lane": how.lane or job.lane,
            "dispatches": job.dispatches + (1 if how.fresh_message or how.lane else 0),
            "retry_at": how.retry_at,
            "retries": job.retries if how.retries is None else how.retries,
            "waiting_reason": how.reason or (Waiting.RETRY if how.retry_at else None),
            "waiting_since": world.runtime.now(),
            "message": how.cause,
            "worker": None,
        }
    )
    lost_at = max(world.runtime.now(), how.retry_at or 0) + ms(world.timing.lost_after)
    writes: dict[str, Write] = {
        LEASE: Update(
            control_table.lease_key(job.tenant, job.subject),
            set={
                "fence": after.fence,
                **control_table.due(control_table.LEASE, job.id, lost_at, world.due_shards),
            },
            remove=("expires_at",),
            when=owns_lease(job),
        ),
        JOB: job_update(world, job, after, when=job_as_read(job)),
    }
    if after.dispatches > job.dispatches:
        writes[DISPATCH] = dispatch_row(world, after)
    if after.lane is not job.lane:
        left = control_table.slots_key(job.tenant, job.lane)
        taken = control_table.slots_key(job.tenant, after.lane)
        writes["slots left"] = Update(left, add={IN_FLIGHT: -1})
        writes["slots taken"] = Update(taken, add={IN_FLIGHT: 1})
    queued = job_is(job.id, lambda now: now.state is State.QUEUED and now.fence == after.fence)
    return Transition(Transaction("let_go", writes, queued), after)
