"""Transactions of a running attempt: begin, heartbeat, a redelivery's receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events.rows import event_rows
from ..storage import control_table
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, Transition, job_is
from ..words.event import EventType
from ..words.job import Job, Lease
from ..words.states import State
from ..words.timing import ms
from ..words.writes import Equals, Update
from .conditions import JOB, LEASE, expiry_as_read, job_as_read, owns_lease

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import Value


def begin_attempt(
    world: World, job: Job, *, worker: str, receipt: str, expired: Lease | None
) -> Transition:
    """Start an attempt.

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
            "worked_ms": _worked_before(job, now),
            "worked_until": now,
            "retry_at": None,
            "waiting_reason": None,
            "message": "",
            "waiting_since": None,
            "sent_again": 0,
            "not_understood_since": None,
        }
    )
    lease = Update(
        control_table.lease_key(job.tenant, job.subject),
        set={"fence": begun.fence, **_lease_until(world, begun, now)},
        when=(*owns_lease(job), *expiry_as_read(expired)),
    )
    first = job.started_at is None
    transaction = Transaction(
        "begin",
        {
            LEASE: lease,
            JOB: job_update(world, job, begun, when=job_as_read(job)),
            **(event_rows(world, begun, EventType.STARTED) if first else {}),
        },
        job_is(job.id, lambda now: now.fence == begun.fence and now.worker == begun.worker),
    )
    return Transition(transaction, begun)


def renew_lease(world: World, job: Job) -> Transaction:
    """Keep the lease for another ``lease_ttl``. Closes: a replaced worker reviving it."""
    lease = Update(
        control_table.lease_key(job.tenant, job.subject),
        set=_lease_until(world, job, world.runtime.now()),
        when=owns_lease(job),
    )
    return Transaction("beat", {LEASE: lease})


def store_receipt(job: Job, receipt: str) -> Transaction:
    """Hand a redelivery's receipt handle to the live worker, if its attempt is still the one
    read."""
    update = Update(
        control_table.job_key(job.id),
        set={"receipt": receipt},
        when=(Equals("state", job.state.value), Equals("fence", job.fence)),
    )
    return Transaction("store_receipt", {JOB: update})


def _worked_before(job: Job, now: int) -> int:
    """The job's working time (ms) so far. Of what an older version did, only the whole time is
    known."""
    if job.worked_until is None and job.position and job.started_at is not None:
        return max(0, now - job.started_at)
    return job.worked_ms


def say_hung(job: Job, why: str) -> Transaction:
    """Say on a running job that its attempt hangs, if the attempt is still the job's."""
    update = Update(
        control_table.job_key(job.id),
        set={"message": why},
        when=(Equals("state", State.RUNNING.value), Equals("fence", job.fence)),
    )
    return Transaction("say_hung", {JOB: update})


def _lease_until(world: World, job: Job, now: int) -> dict[str, Value]:
    """The expiry of a running job's lease, and when recovery finds the job dead: after the time of
    a redelivery."""
    timing = world.timing.lane(job.lane)
    dead = now + ms(timing.lease_ttl) + ms(timing.visibility)
    return {
        "expires_at": now + ms(timing.lease_ttl),
        **control_table.due(control_table.LEASE, job.id, dead, world.due_shards),
    }
