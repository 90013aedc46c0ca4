"""Reading jobs and leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import items

if TYPE_CHECKING:
    from .model import Job, Lease
    from .ports import World


def read_job(world: World, job_id: str) -> Job | None:
    """Raises Undecodable, Transient."""
    item = world.store.get(items.job_key(job_id))
    return None if item is None else items.job_of(item)


def read_lease(world: World, job: Job) -> Lease | None:
    """The lease of the job's subject, whoever holds it. Raises Undecodable, Transient."""
    item = world.store.get(items.lease_key(job.tenant, job.subject))
    return None if item is None else items.lease_of(item)
