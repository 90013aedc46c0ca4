"""The roles of the writes in a transaction, and the conditions that several transactions share.

A transaction is a set of writes by role, so that a refusal can be read by role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..words.job import Job, Lease
from ..words.writes import Equals

if TYPE_CHECKING:
    from ..words.writes import When

LEASE: Final = "lease"
JOB: Final = "job"
DISPATCH: Final = "dispatch"
EFFECT: Final = "effect"


def owns_lease(job: Job) -> When:
    """The subject is still this job's, under this attempt's fence: a worker that lost it can't
    write."""
    return (Equals("job_id", job.id), Equals("fence", job.fence))


def job_as_read(job: Job) -> When:
    """The job was not moved since it was read."""
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
