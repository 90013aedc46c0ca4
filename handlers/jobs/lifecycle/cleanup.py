"""Cleaning up after a finished job, before its message is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage import control_table
from ..storage.control_table import read_lease
from ..storage.job_update import job_update
from ..storage.transaction import Rejected, Transaction, execute, retry_transient
from ..transitions.conditions import JOB, LEASE
from ..words.writes import Equals, Update

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import World


def clean_up(world: World, job: Job) -> None:
    """Delete a finished job's id list and mark the job as cleaned up. Safe to repeat.

    Raises Transient: then the job stays marked for clean-up, and its message must stay.
    """
    if not job.cleanup:
        return
    if job.payload is not None:
        name = job.payload
        retry_transient(world, lambda: world.payloads.delete(name))
    after = job.model_copy(update={"cleanup": False})
    as_read = (Equals("state", job.state.value), Equals("fence", job.fence))
    done = Transaction("cleaned_up", {JOB: job_update(world, job, after, when=as_read)})
    try:
        execute(world, done)
    except Rejected:
        # A retry was asked for meanwhile; it needs no clean-up any more.
        world.telemetry.log("clean_up_overtaken", job_id=job.id, tenant=job.tenant)


def release_if_held(world: World, job: Job) -> None:
    """Free the subject if a finished job still holds it. Raises Transient.

    Only under the fence the job ended with. Closes: a retry that took the subject again since the
    job was read.
    """
    lease = retry_transient(world, lambda: read_lease(world, job))
    if lease is None or lease.job_id != job.id or lease.fence != job.fence:
        return
    release = Transaction(
        "release",
        {
            LEASE: Update(
                control_table.lease_key(job.tenant, job.subject),
                remove=("job_id", "expires_at", *control_table.NOT_DUE),
                when=(Equals("job_id", job.id), Equals("fence", lease.fence)),
            )
        },
    )
    try:
        execute(world, release)
    except Rejected:
        world.telemetry.log("release_overtaken", job_id=job.id, tenant=job.tenant)
