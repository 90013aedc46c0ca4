"""Transactions that give a job its place: subject, tenant slot and dispatch, together or not
at all. One of them stands behind create, take-over, retry, resume, admission and re-dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import items
from .claims import claims
from .events import Happened, event_rows
from .leaving import cleanup_note, replace_state
from .model import EndReason, Job, Waiting
from .states import State, reason_for
from .store import AnyOf, Below, Equals, Missing, Put, Update
from .tenants import admit_to_slot, exchange_slots, one_more, take_slot
from .timing import ms
from .transactions import (
    DISPATCH,
    JOB,
    LEASE,
    Transaction,
    as_read,
    dispatch,
    mine,
    move,
)

if TYPE_CHECKING:
    from .model import Lease
    from .ports import World
    from .store import Value, When, Write

OLD_JOB: Final = "old job"
MAX_DOUBLINGS: Final = 5


def first_fence(world: World, seen: Lease | None = None) -> int:
    """The fence a new holder asks for.

    It starts from the clock so that the creator knows it without reading the lease first; what
    makes it rise is the condition, not the clock. seen: a lease whose fence was already past it.
    """
    return max(world.runtime.now(), seen.fence + 1 if seen else 0)


def placed(world: World, job: Job, *, held: bool) -> Job:
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


def create(world: World, job: Job) -> Transaction:
    """Lease, job, slot and dispatch of a new job (as ``placed``).

    Closes: two creates for one subject (the lease's condition lets one through), a slot taken
    twice, one active job more than the tenant may have, a job without a message or a message
    without a job, a request whose answer was lost making a second job after the first has ended.
    """
    return Transaction(
        "create",
        {
            LEASE: Update(
                items.lease_key(job.tenant, job.subject),
                set={"job_id": job.id, "fence": job.fence, **_watch(world, job)},
                remove=("expires_at",),
                when=(Missing("job_id"), AnyOf((Missing("fence"), Below("fence", job.fence)))),
            ),
            JOB: Put(items.job_key(job.id), items.job_item(job), when=(Missing("state"),)),
            **take_slot(world, job),
            **one_more(world, job),
            **_dispatch_of(world, job),
            **claims(world, job),
            **event_rows(world, job, Happened.CREATED),
        },
    )


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
            items.lease_key(job.tenant, job.subject),
            set={"job_id": job.id, "fence": job.fence, **_watch(world, job)},
            remove=("expires_at",),
            when=(
                Equals("job_id", old.id),
                Equals("fence", lease.fence),
                Equals("expires_at", lease.expires_at),
            ),
        ),
        OLD_JOB: move(
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
            when=as_read(old),
        ),
        JOB: Put(items.job_key(job.id), items.job_item(job), when=(Missing("state"),)),
        **_dispatch_of(world, job),
        **claims(world, job),
    }
    writes |= event_rows(world, job, Happened.CREATED)
    gone = old.model_copy(
        update={
            "state": end,
            "end_reason": None if cancelled else EndReason.TAKEN_OVER,
            "finished_at": now,
        }
    )
    writes |= {f"old {role}": row for role, row in event_rows(world, gone, Happened.ENDED).items()}
    writes |= exchange_slots(world, job, old)
    # One active job ends and one begins: their count stays.
    return Transaction("take_over", writes)


def requeue(world: World, job: Job, after: Job, lease: Lease | None) -> Transaction:
    """FAILED or PAUSED to QUEUED, as ``after`` (``placed``).

    lease: the free lease as read, for a FAILED job, which takes the subject again; None for a
    PAUSED one, which still holds it. Closes: retry or resume asked for twice, a subject that
    somebody else took meanwhile.
    """
    reason_for(job.state, State.QUEUED)
    condition: When = (
        mine(job) if lease is None else (Missing("job_id"), Equals("fence", lease.fence))
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
    attributes = items.stored({name: getattr(after, name) for name in changed})
    if after.held:
        attributes |= items.held(after)
    gone = tuple(n for n in changed if getattr(after, n) is None)
    return Transaction(
        "requeue",
        {
            LEASE: Update(
                items.lease_key(job.tenant, job.subject),
                set={"job_id": job.id, "fence": after.fence, **_watch(world, after)},
                remove=("expires_at",),
                when=condition,
            ),
            JOB: move(
                job,
                State.QUEUED,
                set_={**attributes, "message": ""},
                remove=("end_reason", "finished_at", "expires_at_seconds", *gone),
                when=as_read(job),
            ),
            **take_slot(world, after),
            # A paused job never stopped being active.
            **({} if job.state is State.PAUSED else one_more(world, after)),
            **_dispatch_of(world, after),
        },
    )


def admit(world: World, job: Job) -> tuple[Transaction, Job]:
    """Give a held job the slot it waited for, and its dispatch.

    Closes: admitting it twice, or beyond the tenant's limit, or after it was cancelled.
    """
    after = placed(world, job, held=False)
    writes: dict[str, Write] = {
        LEASE: Update(
            items.lease_key(job.tenant, job.subject), set=_watch(world, after), when=mine(job)
        ),
        JOB: Update(
            items.job_key(job.id),
            set={
                "admitted_at": after.admitted_at,
                "has_slot": True,
                "dispatches": after.dispatches,
            },
            remove=("waiting_reason", *items.NOT_HELD),
            when=(*as_read(job), Equals("waiting_reason", Waiting.TENANT_LIMIT.value)),
        ),
        **admit_to_slot(world, job),
        **_dispatch_of(world, after),
        **event_rows(world, after, Happened.ADMITTED),
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
                items.lease_key(job.tenant, job.subject),
                set=_watch(world, after),
                when=(*mine(job), *expiry),
            ),
            JOB: Update(
                items.job_key(job.id),
                set={"dispatches": after.dispatches},
                when=(*as_read(job), Equals("dispatches", job.dispatches)),
            ),
            DISPATCH: dispatch(world, after),
        },
    ), after


# --- parts ------------------------------------------------------------------------------------


def _watch(world: World, job: Job) -> dict[str, Value]:
    """When recovery asks whether a queued job's message was lost: later each time, because a deep
    queue looks like a lost message."""
    doubled = min(max(job.dispatches - 1, 0), MAX_DOUBLINGS)
    at = world.runtime.now() + (ms(world.timing.lost_after) << doubled)
    return {
        "tenant": job.tenant,
        "subject": job.subject,
        **items.due(items.LEASE, job.id, at, world.due_shards),
    }


def _dispatch_of(world: World, job: Job) -> dict[str, Write]:
    return {} if job.held else {DISPATCH: dispatch(world, job)}
