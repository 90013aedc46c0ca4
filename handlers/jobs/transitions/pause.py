"""Transactions of clients' requests: pause a job, ask its worker to stop, record a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage import control_table
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, Transition, job_is
from ..words.states import State
from ..words.writes import AnyOf, Equals, Missing, Update
from .conditions import JOB, LEASE, expiry_as_read, job_as_read, owns_lease
from .quotas import return_slot

if TYPE_CHECKING:
    from ..words.job import HistoryEntry, Job, Lease
    from ..words.ports import World
    from ..words.writes import Write


def pause_transaction(
    world: World, job: Job, expired: Lease | None = None, entry: HistoryEntry | None = None
) -> Transition:
    """QUEUED or PAUSING to PAUSED: the subject stays taken, without an expiry; the slot is free.

    entry: the client's request, if the pause is not the end of an earlier one.

    The fence rises. Closes: a beat that arrives late and gives the lease an expiry again, a resume
    whose reply was lost undoing a later pause.
    """
    after = job.model_copy(
        update={
            "state": State.PAUSED,
            "fence": job.fence + 1,
            "attempt": max(0, job.attempt - _gives_back(job)),
            "has_slot": False,
            "worker": None,
            "receipt": None,
            "retry_at": None,
            "waiting_reason": None,
            "waiting_since": world.runtime.now(),
            **job.noted(entry),
        }
    )
    writes: dict[str, Write] = {
        LEASE: Update(
            control_table.lease_key(job.tenant, job.subject),
            set={"fence": after.fence},
            remove=("expires_at", *control_table.NOT_DUE),
            when=(*owns_lease(job), *expiry_as_read(expired)),
        ),
        JOB: job_update(world, job, after, when=job_as_read(job)),
        **return_slot(job),
    }
    paused = job_is(job.id, lambda now: now.state is State.PAUSED and now.fence == after.fence)
    return Transition(Transaction("pause", writes, paused), after)


def _gives_back(job: Job) -> int:
    return 1 if job.state is State.PAUSING else 0


def request_stop(
    world: World, job: Job, state: State, entry: HistoryEntry | None = None
) -> Transition:
    """RUNNING to CANCELLING or PAUSING, or PAUSING to CANCELLING; the worker sees it at its next
    chunk boundary.

    Closes: cancelling a job that its worker has paused meanwhile, which no worker would hear."""
    after = job.model_copy(update={"state": state, **job.noted(entry)})
    update = job_update(world, job, after, when=job_as_read(job))
    asked = job_is(job.id, lambda now: now.state is state and now.fence == job.fence)
    return Transition(Transaction("ask_" + state.value.lower(), {JOB: update}, asked), after)


def note_request(world: World, job: Job, entry: HistoryEntry) -> Transaction:
    """Record a client's request that changes nothing else of the job.

    Closes: two requests at once, of which one would take the other's entry out of the history.
    """
    after = job.model_copy(update=job.noted(entry))
    as_read = Equals("verbs", job.verbs)
    when = as_read if job.verbs else AnyOf((Missing("verbs"), as_read))
    update = job_update(world, job, after, when=(when,))
    noted = job_is(job.id, lambda now: entry in now.history)
    return Transaction("note_request", {JOB: update}, noted)
