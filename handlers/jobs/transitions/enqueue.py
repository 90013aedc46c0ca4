"""Transactions that give a job its subject, tenant slot and dispatch: all of them or none.

They stand behind create, retry, resume, admission and re-dispatch; ``takeover`` is one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows
from ..storage import control_table
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, Transition, job_is
from ..words.event import EventType
from ..words.job import Job, Waiting
from ..words.states import State
from ..words.timing import ms
from ..words.writes import AnyOf, Below, Equals, Missing, Put, Update
from .conditions import DISPATCH, JOB, LEASE, expiry_as_read, job_as_read, owns_lease
from .idempotency import uniqueness_rows
from .quotas import admit_to_slot, count_active, take_slot

if TYPE_CHECKING:
    from ..words.job import Lease
    from ..words.ports import World
    from ..words.writes import Value, When, Write

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
            "waiting_since": world.runtime.now(),
            "admitted_at": None if held else world.runtime.now(),
            "has_slot": not held,
            "dispatches": job.dispatches + (0 if held else 1),
            "message": "",
            "not_understood_since": None,
        }
    )


def create_job(world: World, job: Job) -> Transaction:
    """Lease, job, slot and dispatch of a new job (as ``queued_job``).

    Closes: two creates for one subject (the lease's condition lets one through), a slot taken
    twice, one active job more than the tenant may have, a job without a message or a message
    without a job, a request whose answer was lost making a second job after the first has ended.
    """
    free = (Missing("job_id"), AnyOf((Missing("fence"), Below("fence", job.fence))))
    return Transaction(
        "create",
        {
            LEASE: subject_taken(world, job, when=free),
            JOB: new_job_row(world, job),
            **take_slot(world, job),
            **count_active(world, job),
            **first_dispatch(world, job),
            **uniqueness_rows(world, job),
            **event_rows(world, job, EventType.CREATED),
        },
        job_is(job.id, lambda _: True),
    )


def requeue_job(world: World, job: Job, after: Job, lease: Lease | None) -> Transition:
    """FAILED or PAUSED to QUEUED, as ``after`` (``queued_job``).

    lease: the free lease as read, for a FAILED job, which takes the subject again; None for a
    PAUSED one, which still holds it. Closes: retry or resume asked for twice, a subject that
    another job took meanwhile.
    """
    mine_or_free = (
        owns_lease(job) if lease is None else (Missing("job_id"), Equals("fence", lease.fence))
    )
    transaction = Transaction(
        "requeue",
        {
            LEASE: subject_taken(world, after, when=mine_or_free),
            JOB: job_update(world, job, after, when=job_as_read(job)),
            **take_slot(world, after),
            # A paused job never stopped being active.
            **({} if job.state is State.PAUSED else count_active(world, after)),
            **first_dispatch(world, after),
        },
        job_is(
            job.id,
            lambda now: (
                now.state not in {job.state, State.CANCELLED}
                and now.fence >= after.fence
                and now.dispatches >= after.dispatches
            ),
        ),
    )
    return Transition(transaction, after)


def admit_job(world: World, job: Job) -> Transition:
    """Give a held job the slot it waited for, and its dispatch.

    Closes: admitting it twice, or beyond the tenant's limit, or after it was cancelled.
    """
    after = queued_job(world, job, held=False)
    held = (*job_as_read(job), Equals("waiting_reason", Waiting.TENANT_LIMIT.value))
    transaction = Transaction(
        "admit",
        {
            LEASE: _update_lease_due(world, after, when=owns_lease(job)),
            JOB: job_update(world, job, after, when=held),
            **admit_to_slot(world, job),
            **first_dispatch(world, after),
            **event_rows(world, after, EventType.ADMITTED),
        },
        job_is(job.id, lambda now: not now.held and now.dispatches == after.dispatches),
    )
    return Transition(transaction, after)


def dispatch_again(world: World, job: Job, lease: Lease) -> Transition:
    """A fresh message for a job whose message seems lost. A duplicate is harmless.

    Closes: two recovery runs dispatching the same job (both raise its dispatch number).
    """
    lost = job.state is State.RUNNING
    waits = {"waiting_reason": Waiting.WORKER_LOST, "waiting_since": world.runtime.now()}
    counts = {"dispatches": job.dispatches + 1, "sent_again": job.sent_again + 1}
    after = job.model_copy(update={**counts, **(waits if lost else {})})
    expiry = (Missing("expires_at"),) if lease.expires_at is None else expiry_as_read(lease)
    transaction = Transaction(
        "dispatch_again",
        {
            LEASE: _update_lease_due(world, after, when=(*owns_lease(job), *expiry)),
            JOB: job_update(world, job, after, when=job_as_read(job)),
            DISPATCH: dispatch_row(world, after),
        },
        job_is(job.id, lambda now: now.dispatches >= after.dispatches),
    )
    return Transition(transaction, after)


# --- parts ------------------------------------------------------------------------------------


def new_job_row(world: World, job: Job) -> Put:
    key = control_table.job_key(job.id)
    return Put(key, control_table.job_item(world, job), when=(Missing("state"),))


def subject_taken(world: World, job: Job, *, when: When) -> Update:
    """The lease is the job's from here on, without an expiry."""
    return Update(
        control_table.lease_key(job.tenant, job.subject),
        set={"job_id": job.id, "fence": job.fence, **_lease_due(world, job)},
        remove=("expires_at",),
        when=when,
    )


def first_dispatch(world: World, job: Job) -> dict[str, Write]:
    """The job's first dispatch row; none for a held job, whose dispatch admission writes."""
    return {} if job.held else {DISPATCH: dispatch_row(world, job)}


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


def _update_lease_due(world: World, job: Job, *, when: When) -> Update:
    key = control_table.lease_key(job.tenant, job.subject)
    return Update(key, set=_lease_due(world, job), when=when)


def _lease_due(world: World, job: Job) -> dict[str, Value]:
    """The attributes that make recovery check whether a queued job's message was lost: later each
    time, because a deep queue looks like a lost message, but never later than a message lasts that
    nobody hears of. Otherwise a job would be without a message for hours after a long outage."""
    first, doubled = world.timing.lost_after, min(job.sent_again, MAX_DOUBLINGS)
    longest = max(first, world.timing.lane(job.lane).unheard_for)
    at = world.runtime.now() + min(ms(first) << doubled, ms(longest))
    return {
        "tenant": job.tenant,
        "subject": job.subject,
        **control_table.due(control_table.LEASE, job.id, at, world.due_shards),
    }
