"""Transactions that pause a job, or ask its worker to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage import control_table
from ..storage.transaction import Transaction
from ..words.job import Job, Lease
from ..words.states import State
from ..words.writes import Update
from .conditions import JOB, LEASE, expiry_as_read, job_as_read, move_state, owns_lease
from .quotas import return_slot

if TYPE_CHECKING:
    from ..words.writes import Write


def pause_transaction(job: Job, expired: Lease | None = None) -> tuple[Transaction, Job]:
    """QUEUED or PAUSING to PAUSED: the subject stays taken, without an expiry; the slot is free.

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
        }
    )
    changed = ("fence", "attempt", "has_slot")
    writes: dict[str, Write] = {
        LEASE: Update(
            control_table.lease_key(job.tenant, job.subject),
            set={"fence": after.fence},
            remove=("expires_at", *control_table.NOT_DUE),
            when=(*owns_lease(job), *expiry_as_read(expired)),
        ),
        JOB: move_state(
            job,
            State.PAUSED,
            set_={name: getattr(after, name) for name in changed},
            remove=("worker", "receipt", "retry_at", "waiting_reason", *control_table.NOT_HELD),
            when=job_as_read(job),
        ),
    }
    return Transaction("pause", writes | return_slot(job)), after


def _gives_back(job: Job) -> int:
    return 1 if job.state is State.PAUSING else 0


def request_stop(job: Job, state: State) -> Transaction:
    """RUNNING to CANCELLING or PAUSING; the worker sees it at its next chunk boundary."""
    return Transaction(
        "ask_" + state.value.lower(), {JOB: move_state(job, state, when=job_as_read(job))}
    )
