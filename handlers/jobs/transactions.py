"""Every conditional write of a running job, each with the race it closes.

A transaction is a set of writes by role, so that a refusal can be read by role. Nothing here does
anything: ``settle.carry_out`` does. What gives a job its place is in ``placing``, what takes it
from its worker in ``leaving``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import items
from .events import Happened, event_rows
from .model import Job, Lease
from .states import State, reason_for
from .store import Check, Equals, Missing, Put, Update
from .timing import ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .model import Counts, IdCursor
    from .ports import World
    from .store import Item, Value, When, Write

LEASE: Final = "lease"
JOB: Final = "job"
DISPATCH: Final = "dispatch"
OUTCOMES: Final = "outcomes"
EFFECT: Final = "effect"


@dataclass(frozen=True)
class Transaction:
    action: str
    writes: Mapping[str, Write]
    """By role, in the order they are sent."""


# --- conditions that several transactions share -----------------------------------------------


def mine(job: Job) -> When:
    """The subject is still this job's, under this attempt's fence: who lost it can't write."""
    return (Equals("job_id", job.id), Equals("fence", job.fence))


def as_read(job: Job) -> When:
    """Nobody moved the job since it was read."""
    return (
        Equals("state", job.state.value),
        Equals("fence", job.fence),
        Equals("attempt", job.attempt),
        Equals("has_slot", job.has_slot),
        Equals("dispatches", job.dispatches),
    )


def expiry_as_read(lease: Lease | None) -> When:
    """No beat came between reading an expired lease and acting on it."""
    if lease is None:
        return ()
    return (Equals("expires_at", lease.expires_at),)


# --- the life of an attempt -------------------------------------------------------------------


def begin(
    world: World, job: Job, *, worker: str, receipt: str, expired: Lease | None
) -> tuple[Transaction, Job]:
    """Start an attempt; returns the job as it is afterwards.

    expired: the lease as read, when a RUNNING job is resumed. Closes: two deliveries beginning
    the same job (one sees the other's attempt), a beat that arrives late, a cancel in between.
    """
    now = world.runtime.now()
    begun = job.model_copy(
        update={
            "state": State.RUNNING,
            "attempt": job.attempt + 1,
            "fence": job.fence + 1,
            "worker": worker,
            "receipt": receipt,
            "started_at": job.started_at if job.started_at is not None else now,
            "retry_at": None,
            "waiting_reason": None,
        }
    )
    lease = Update(
        items.lease_key(job.tenant, job.subject),
        set={"fence": begun.fence, **_held_until(world, begun, now)},
        when=(*mine(job), *expiry_as_read(expired)),
    )
    changed = ("attempt", "fence", "worker", "receipt", "started_at")
    update = move(
        job,
        State.RUNNING,
        set_=items.stored({name: getattr(begun, name) for name in changed}),
        remove=("retry_at", "waiting_reason"),
        when=as_read(job),
    )
    first = job.started_at is None
    told = event_rows(world, begun, Happened.STARTED) if first else {}
    return Transaction("begin", {LEASE: lease, JOB: update, **told}), begun


def beat(world: World, job: Job) -> Transaction:
    """Keep the lease for another ``lease_ttl``. Closes: a worker that was replaced reviving it."""
    lease = Update(
        items.lease_key(job.tenant, job.subject),
        set=_held_until(world, job, world.runtime.now()),
        when=mine(job),
    )
    return Transaction("beat", {LEASE: lease})


def commit_chunk(
    job: Job,
    *,
    position: int,
    cursor: IdCursor,
    counts: Counts,
    records: Sequence[Write],
    outcomes: Item | None,
    effect: Put | None = None,
) -> Transaction:
    """Change the records of one chunk and move the checkpoint past them, or do neither.

    position, cursor: the checkpoint afterwards. Closes: a replaced worker writing late (lease), a
    chunk applied twice and a cancelled job that goes on (job), a record changed by somebody else
    since it was read (record).
    """
    writes: dict[str, Write] = {
        LEASE: Check(items.lease_key(job.tenant, job.subject), when=mine(job)),
        JOB: Update(
            items.job_key(job.id),
            set={"position": position, "cursor": cursor, "committed_fence": job.fence},
            add={
                **{name: count for name, count in counts.model_dump().items() if count},
                **({"effects_open": 1} if effect else {}),
            },
            when=(Equals("state", State.RUNNING.value), Equals("position", job.position)),
        ),
    }
    writes |= {record_role(index): write for index, write in enumerate(records)}
    if outcomes is not None:
        writes[OUTCOMES] = Put(items.outcome_key(job.id, job.position), outcomes)
    if effect is not None:
        writes[EFFECT] = effect
    return Transaction("commit_chunk", writes)


def record_role(index: int) -> str:
    return f"record {index}"


def list_written(job: Job, *, payload: str, total: int, duplicates: int) -> Transaction:
    """The job's id list is complete; from here on it is what the job walks.

    Closes: a replaced worker's list coming late (lease), two lists for one job (payload), a job
    that was cancelled or paused meanwhile (state).
    """
    update = Update(
        items.job_key(job.id),
        set={"payload": payload, "total": total, "duplicates": duplicates},
        when=(*_running(job), Missing("payload")),
    )
    check = Check(items.lease_key(job.tenant, job.subject), when=mine(job))
    return Transaction("list_written", {LEASE: check, JOB: update})


def total_known(job: Job) -> Transaction:
    """A walk whose length nobody knew has come to its end.

    Closes: a replaced worker calling the end too early (lease, position).
    """
    update = Update(
        items.job_key(job.id),
        set={"total": job.position},
        when=(*_running(job), Equals("position", job.position)),
    )
    check = Check(items.lease_key(job.tenant, job.subject), when=mine(job))
    return Transaction("total_known", {LEASE: check, JOB: update})


def _running(job: Job) -> When:
    return (Equals("state", State.RUNNING.value), Equals("fence", job.fence))


def store_receipt(job: Job, receipt: str) -> Transaction:
    """Hand a redelivery's receipt handle to the live worker, if it is still the one we saw."""
    update = Update(
        items.job_key(job.id),
        set={"receipt": receipt},
        when=(Equals("state", job.state.value), Equals("fence", job.fence)),
    )
    return Transaction("store_receipt", {JOB: update})


# --- parts ------------------------------------------------------------------------------------


def move(
    job: Job,
    state: State,
    *,
    set_: Item | None = None,
    remove: tuple[str, ...] = (),
    when: When = (),
) -> Update:
    """The only way a job's state changes. Raises IllegalTransition for an edge that isn't one."""
    reason_for(job.state, state)
    return Update(
        items.job_key(job.id), set={"state": state.value, **(set_ or {})}, remove=remove, when=when
    )


def dispatch(world: World, job: Job) -> Put:
    """The outbox row: this job's message must be in its lane's queue.

    Due after the fast path has had its chance.
    """
    at = max(world.runtime.now() + ms(world.timing.dispatch_grace), job.retry_at or 0)
    return Put(
        items.dispatch_key(job.id, job.dispatches),
        {
            "job_id": job.id,
            "lane": job.lane.value,
            "tenant": job.tenant,
            "tries": 0,
            **items.due(items.DISPATCH, job.id, at, world.due_shards),
        },
    )


def _held_until(world: World, job: Job, now: int) -> dict[str, Value]:
    """A running job's expiry, and when recovery should find it dead: after a redelivery."""
    timing = world.timing.lane(job.lane)
    dead = now + ms(timing.lease_ttl) + ms(timing.visibility)
    return {
        "expires_at": now + ms(timing.lease_ttl),
        **items.due(items.LEASE, job.id, dead, world.due_shards),
    }
