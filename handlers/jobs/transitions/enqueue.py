"""Transactions that give a job its subject, tenant slot and dispatch: all of them or none.

They stand behind create, retry, resume, admission and re-dispatch; ``takeover`` is one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows
from ..storage import control_table
from ..storage.transaction import Transaction
from ..words.event import EventType
from ..words.job import Job, Waiting
from ..words.states import State, reason_for
from ..words.timing import ms
from ..words.writes import AnyOf, Below, Equals, Missing, Put, Update
from .conditions import DISPATCH, JOB, LEASE, job_as_read, move_state, owns_lease
from .idempotency import uniqueness_rows
from .quotas import admit_to_slot, count_active, take_slot

if TYPE_CHECKING:
    from ..words.job import Lease
    from ..words.ports import World
    from ..words.writes import Value, When, Write


def dispatch_row(world: World, job: Job) -> Put:
    """The outbox row: this job's message must be in its lane's queue.

    Due after the fast path has had its chance.
    """
    at = max(world.runtime.now() + ms(world.timing.dispatch_grace), job.retry_at or 0)
    return Put(
        control_table.dispatch_key(job.id, job.dispatches),
        {
            "job_id": job.id,
            "lane": job.lane.value,
            "tenant": job.tenant,
            "tries": 0,
            **control_table.due(control_table.DISPATCH, job.id, at, world.due_shards),
        },
    )


MAX_DOUBLINGS: Final = 5


def first_fence(world: World, seen: Lease | None = None) -> int:
    """The fence a new holder asks for.

    It starts from the clock so that the creator knows it without reading the lease first; what
    makes it rise is the condition, not the clock. seen: a lease whose fence was already past it.
    """
    return max(world.runtime.now(), seen.fence + 1 if seen else 0)


def queued_job(world: World, job: Job, *, held: bool) -> Job:
    """The job as it is queued: with a slot and a dispatch, or held for want of a slot."""
    return job.model_copy(
        update={
            "state": State.QUEUED,
            "waiting_reason": Waiting.TENANT_LIMIT if held else None,
            "admitted_at": None if held else world.runtime.now(),
            "has_slot": not held,
            "dispatches": job.dispatches + (0 if held else 1),
        }
    )


def create_job(world: World, job: Job) -> Transaction:
    """Lease, job, slot and dispatch of a new job (as ``queued_job``).

    Closes: two creates for one subject (the lease's condition lets one through), a slot taken
    twice, one active job more than the tenant may have, a job without a message or a message
    without a job, a request whose answer was lost making a second job after the first has ended.
    """
    return Transaction(
        "create",
        {
            LEASE: Update(
                control_table.lease_key(job.tenant, job.subject),
                set={"job_id": job.id, "fence": job.fence, **_watch_lease(world, job)},
                remove=("expires_at",),
                when=(Missing("job_id"), AnyOf((Missing("fence"), Below("fence", job.fence)))),
            ),
            JOB: Put(
                control_table.job_key(job.id), control_table.job_item(job), when=(Missing("state"),)
            ),
            **take_slot(world, job),
            **count_active(world, job),
            **_dispatch_if_admitted(world, job),
            **uniqueness_rows(world, job),
            **event_rows(world, job, EventType.CREATED),
        },
    )


def requeue_job(world: World, job: Job, after: Job, lease: Lease | None) -> Transaction:
    """FAILED or PAUSED to QUEUED, as ``after`` (``queued_job``).

    lease: the free lease as read, for a FAILED job, which takes the subject again; None for a
    PAUSED one, which still holds it. Closes: retry or resume asked for twice, a subject that
    somebody else took meanwhile.
    """
    reason_for(job.state, State.QUEUED)
    condition: When = (
        owns_lease(job) if lease is None else (Missing("job_id"), Equals("fence", lease.fence))
    )
    changed = (
        "fence",
        "attempt",
        "retries",
        "dispatches",
        "admitted_at",
        "waiting_reason",
        "has_slot",
        "total",
    )
    attributes = control_table.stored({name: getattr(after, name) for name in changed})
    if after.held:
        attributes |= control_table.held(after)
    gone = tuple(n for n in changed if getattr(after, n) is None)
    return Transaction(
        "requeue",
        {
            LEASE: Update(
                control_table.lease_key(job.tenant, job.subject),
                set={"job_id": job.id, "fence": after.fence, **_watch_lease(world, after)},
                remove=("expires_at",),
                when=condition,
            ),
            JOB: move_state(
                job,
                State.QUEUED,
                set_={**attributes, "message": ""},
                remove=("end_reason", "finished_at", "expires_at_seconds", *gone),
                when=job_as_read(job),
            ),
            **take_slot(world, after),
            # A paused job never stopped being active.
            **({} if job.state is State.PAUSED else count_active(world, after)),
            **_dispatch_if_admitted(world, after),
        },
    )


def admit_job(world: World, job: Job) -> tuple[Transaction, Job]:
    """Give a held job the slot it waited for, and its dispatch.

    Closes: admitting it twice, or beyond the tenant's limit, or after it was cancelled.
    """
    after = queued_job(world, job, held=False)
    writes: dict[str, Write] = {
        LEASE: Update(
            control_table.lease_key(job.tenant, job.subject),
            set=_watch_lease(world, after),
            when=owns_lease(job),
        ),
        JOB: Update(
            control_table.job_key(job.id),
            set={
                "admitted_at": after.admitted_at,
                "has_slot": True,
                "dispatches": after.dispatches,
            },
            remove=("waiting_reason", *control_table.NOT_HELD),
            when=(*job_as_read(job), Equals("waiting_reason", Waiting.TENANT_LIMIT.value)),
        ),
        **admit_to_slot(world, job),
        **_dispatch_if_admitted(world, after),
        **event_rows(world, after, EventType.ADMITTED),
    }
    return Transaction("admit", writes), after


def dispatch_again(world: World, job: Job, lease: Lease) -> tuple[Transaction, Job]:
    """A fresh message for a job whose message seems lost. A duplicate is harmless.

    Closes: two recovery runs dispatching the same job (both raise its dispatch number).
    """
    after = job.model_copy(update={"dispatches": job.dispatches + 1})
    expiry: When = (
        (Missing("expires_at"),)
        if lease.expires_at is None
        else (Equals("expires_at", lease.expires_at),)
    )
    return Transaction(
        "dispatch_again",
        {
            LEASE: Update(
                control_table.lease_key(job.tenant, job.subject),
                set=_watch_lease(world, after),
                when=(*owns_lease(job), *expiry),
            ),
            JOB: Update(
                control_table.job_key(job.id),
                set={"dispatches": after.dispatches},
                when=(*job_as_read(job), Equals("dispatches", job.dispatches)),
            ),
            DISPATCH: dispatch_row(world, after),
        },
    ), after


# --- parts ------------------------------------------------------------------------------------


def _watch_lease(world: World, job: Job) -> dict[str, Value]:
    """When recovery asks whether a queued job's message was lost: later each time, because a deep
    queue looks like a lost message."""
    doubled = min(max(job.dispatches - 1, 0), MAX_DOUBLINGS)
    at = world.runtime.now() + (ms(world.timing.lost_after) << doubled)
    return {
        "tenant": job.tenant,
        "subject": job.subject,
        **control_table.due(control_table.LEASE, job.id, at, world.due_shards),
    }


def _dispatch_if_admitted(world: World, job: Job) -> dict[str, Write]:
    return {} if job.held else {DISPATCH: dispatch_row(world, job)}
