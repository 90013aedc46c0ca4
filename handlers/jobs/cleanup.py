"""What a finished job leaves behind is removed before its message is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import items
from .reading import read_lease
from .settle import Rejected, carry_out, insist
from .store import Equals, Update
from .transactions import JOB, LEASE, Transaction

if TYPE_CHECKING:
    from .model import Job
    from .ports import World


def clean_up(world: World, job: Job) -> None:
    """Delete a finished job's id list and note that nothing is left. Safe to repeat.

    Raises Transient: then the job keeps its note, and its message must stay.
    """
    if not job.cleanup:
        return
    if job.payload is not None:
        name = job.payload
        insist(world, lambda: world.payloads.delete(name))
    done = Transaction(
        "cleaned_up",
        {
            JOB: Update(
                items.job_key(job.id),
                remove=("cleanup", *items.NOT_DUE),
                when=(Equals("state", job.state.value), Equals("fence", job.fence)),
            )
        },
    )
    try:
        carry_out(world, done, applied=lambda: False)
    except Rejected:
        # A retry was asked for meanwhile; it needs no clean-up any more.
        world.telemetry.log("clean_up_overtaken", job_id=job.id, tenant=job.tenant)


def release_if_held(world: World, job: Job) -> None:
    """Free the subject if a finished job still holds it. Raises Transient.

    Only under the fence the job ended with. Closes: a retry that took the subject again since the
    job was read.
    """
    lease = insist(world, lambda: read_lease(world, job))
    if lease is None or lease.job_id != job.id or lease.fence != job.fence:
        return
    release = Transaction(
        "release",
        {
            LEASE: Update(
                items.lease_key(job.tenant, job.subject),
                remove=("job_id", "expires_at", *items.NOT_DUE),
                when=(Equals("job_id", job.id), Equals("fence", lease.fence)),
            )
        },
    )
    try:
        carry_out(world, release, applied=lambda: False)
    except Rejected:
        world.telemetry.log("release_overtaken", job_id=job.id, tenant=job.tenant)
