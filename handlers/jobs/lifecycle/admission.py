"""Admission: a free slot goes to the oldest held job of its tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..events.rows import publish_now
from ..storage import control_table
from ..storage.control_table import read_job
from ..storage.transaction import Rejected, execute
from ..transitions.enqueue import admit_job
from ..transitions.quotas import SLOTS, lane_use
from ..words.errors import Transient, Undecodable
from ..words.job import Job, Lane
from ..words.writes import Index
from .dispatch import send_dispatch

if TYPE_CHECKING:
    from ..words.ports import World

MAX_ADMITTED: Final = 10
"""Held jobs one call admits; more than one slot is free only after a limit was raised."""


def admit_held(world: World, tenant: str, lane: Lane) -> int:
    """Give free slots to the tenant's oldest held jobs; returns how many were admitted.

    Never raises: recovery tries again while a job is held.
    """
    admitted = 0
    try:
        page = world.store.query(
            Index.HELD, control_table.held_partition(tenant, lane), limit=MAX_ADMITTED
        )
        for found in page.found:
            try:
                job = read_job(world, str(found.item["id"]))
            except Undecodable as error:
                # Recovery ends it; the jobs behind it need not wait for that.
                world.telemetry.log("held_job_undecodable", pk=found.key.pk, why=str(error))
                continue
            if job is None or not job.held:
                continue  # the index lags
            if not _admit(world, job):
                break
            admitted += 1
    except (Transient, Undecodable) as error:
        world.telemetry.log("admission_left", tenant=tenant, lane=lane.value, why=str(error))
    return admitted


def admit_if_free(world: World, job: Job) -> None:
    """Admit a job that was just held, if a slot is free by now: a slot that was freed after the job
    was refused one, and before it was held, found no job to admit. Never raises: recovery tries
    again while a job is held."""
    try:
        use = lane_use(world, job.tenant, job.lane)
        if use.count >= use.limit:
            return
        if use.held > 1:
            admit_held(world, job.tenant, job.lane)
        else:
            _admit(world, job)  # the index may not know it yet
    except (Transient, Undecodable) as error:
        world.telemetry.log("admission_left", tenant=job.tenant, why=str(error))


def _admit(world: World, job: Job) -> bool:
    transition = admit_job(world, job)
    try:
        execute(world, transition.transaction)
    except Rejected as rejected:
        return SLOTS not in rejected.reasons
    send_dispatch(world, transition.after)
    publish_now(world, transition.transaction)
    return True
