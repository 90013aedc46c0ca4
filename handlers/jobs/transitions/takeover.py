"""Take-over: a new job takes the subject of a job whose worker is dead, and ends that job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows
from ..storage import control_table
from ..storage.transaction import Transaction
from ..words.event import EventType
from ..words.job import EndReason, Job
from ..words.states import State
from ..words.writes import Equals, Missing, Put, Update
from .conditions import JOB, LEASE, job_as_read, move_state
from .enqueue import _dispatch_if_admitted, _watch_lease
from .finish import cleanup_note, replace_state
from .idempotency import uniqueness_rows
from .quotas import exchange_slots

if TYPE_CHECKING:
    from ..words.job import Lease
    from ..words.ports import World
    from ..words.writes import Write

OLD_JOB: Final = "old job"


def take_over(world: World, job: Job, lease: Lease, old: Job) -> Transaction:
    """Create ``job`` on a subject whose holder ``old`` is dead, ending ``old`` with it.

    lease: as read, expired for longer than the grace. Closes: the holder coming back to life
    between the read and the write (its beat or its next attempt changes the lease).
    """
    cancelled = old.state is State.CANCELLING
    end = State.CANCELLED if cancelled else State.FAILED
    now = world.runtime.now()
    writes: dict[str, Write] = {
        LEASE: Update(
            control_table.lease_key(job.tenant, job.subject),
            set={"job_id": job.id, "fence": job.fence, **_watch_lease(world, job)},
            remove=("expires_at",),
            when=(
                Equals("job_id", old.id),
                Equals("fence", lease.fence),
                Equals("expires_at", lease.expires_at),
            ),
        ),
        OLD_JOB: move_state(
            old,
            end,
            set_={
                **({} if cancelled else {"end_reason": EndReason.TAKEN_OVER.value}),
                "message": f"its worker stopped answering; job {job.id} took the subject over",
                "finished_at": now,
                "has_slot": False,
                "expires_at_seconds": world.timing.history_ends(now),
                **cleanup_note(world, replace_state(old, end)),
            },
            remove=("worker", "receipt"),
            when=job_as_read(old),
        ),
        JOB: Put(
            control_table.job_key(job.id), control_table.job_item(job), when=(Missing("state"),)
        ),
        **_dispatch_if_admitted(world, job),
        **uniqueness_rows(world, job),
    }
    writes |= event_rows(world, job, EventType.CREATED)
    gone = old.model_copy(
        update={
            "state": end,
            "end_reason": None if cancelled else EndReason.TAKEN_OVER,
            "finished_at": now,
        }
    )
    writes |= {f"old {role}": row for role, row in event_rows(world, gone, EventType.ENDED).items()}
    writes |= exchange_slots(world, job, old)
    # One active job ends and one begins: their count stays.
    return Transaction("take_over", writes)
