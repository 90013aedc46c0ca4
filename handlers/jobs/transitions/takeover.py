"""Take-over: a new job takes the subject of a job whose worker is dead, and ends that job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, job_is
from ..words.event import EventType
from ..words.job import EndReason, Job
from ..words.states import State
from ..words.writes import Equals
from .conditions import JOB, LEASE, expiry_as_read, job_as_read
from .enqueue import first_dispatch, new_job_row, subject_taken
from .finish import cleanup_left
from .idempotency import uniqueness_rows
from .quotas import exchange_active, exchange_slots

if TYPE_CHECKING:
    from ..words.job import Lease
    from ..words.ports import World

OLD_JOB: Final = "old job"


def take_over(world: World, job: Job, lease: Lease, old: Job) -> Transaction:
    """Create ``job`` on a subject whose holder ``old`` is dead, ending ``old`` with it.

    lease: as read, expired for longer than the grace. Closes: the holder coming back to life
    between the read and the write (its beat or its next attempt changes the lease); an operator
    stopping the tenant meanwhile.
    """
    as_read = (Equals("job_id", old.id), Equals("fence", lease.fence), *expiry_as_read(lease))
    gone = _taken_over(world, old, job)
    ended = event_rows(world, gone, EventType.ENDED)
    return Transaction(
        "take_over",
        {
            LEASE: subject_taken(world, job, when=as_read),
            OLD_JOB: job_update(world, old, gone, when=job_as_read(old)),
            JOB: new_job_row(world, job),
            **first_dispatch(world, job),
            **uniqueness_rows(world, job),
            **event_rows(world, job, EventType.CREATED),
            **{f"old {role}": row for role, row in ended.items()},
            **exchange_slots(world, job, old),
            **exchange_active(job),
        },
        job_is(job.id, lambda _: True),
    )


def _taken_over(world: World, old: Job, job: Job) -> Job:
    cancelled = old.state is State.CANCELLING
    end = State.CANCELLED if cancelled else State.FAILED
    return old.model_copy(
        update={
            "state": end,
            "end_reason": None if cancelled else EndReason.TAKEN_OVER,
            "message": f"its worker stopped answering; job {job.id} took the subject over",
            "finished_at": world.runtime.now(),
            "has_slot": False,
            "worker": None,
            "receipt": None,
            "cleanup": cleanup_left(old, end),
        }
    )
