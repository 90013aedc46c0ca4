"""Bringing a job to its end or to a pause, and what follows: the slot's next user, clean-up.

Whoever frees a slot admits the next job that is held for one: recovery only makes up for a crash
in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import items, leaving, placing
from .cleanup import clean_up
from .dispatching import send_now
from .errors import Transient, Undecodable
from .events import tell_now
from .leaving import Ending
from .measures import Measure
from .model import EndReason, Job, Lane
from .reading import read_job
from .settle import Rejected, carry_out
from .states import State
from .store import Index
from .tenants import SLOTS, lane_use

if TYPE_CHECKING:
    from .model import Lease
    from .ports import World
    from .transactions import Transaction

MAX_ADMITTED: Final = 10
"""Held jobs one call admits; more than one is only free when limits were raised."""


def verdict(job: Job) -> Ending:
    """How a job whose records are all settled ends: its counts and its tolerance decide, and its
    effects may still have to be waited for."""
    failed = job.failed * 100 > job.tolerated_failure_percent * max(job.total or 0, 1)
    state = State.FAILED if failed else State.SUCCEEDED
    reason = EndReason.TOO_MANY_FAILED if failed else None
    if job.effects_open or job.effects_parked:
        return Ending(State.SETTLING, reason, settles_to=state)
    return Ending(state, reason)


def end_job(world: World, job: Job, ending: Ending) -> Job:
    """End the job, then admit the tenant's next one and clean up what can be cleaned now.

    Returns the job as it is afterwards. Raises Rejected when it was moved meanwhile, Transient
    when nothing was written. What fails after the end itself is left to recovery.
    """
    others_wait = False
    try:
        transaction = _end(world, job, ending, unless_held=True)
    except Rejected as rejected:
        if set(rejected.reasons) != {SLOTS}:
            raise
        others_wait = True
        transaction = _end(world, job, ending, unless_held=False)
    ended = _ended(world, job, ending)
    _measure(world, ended)
    if others_wait:
        admit_held(world, job.tenant, job.lane)
    tell_now(world, transaction)
    try:
        clean_up(world, ended)
    except Transient as error:
        world.telemetry.log("clean_up_left", job_id=job.id, tenant=job.tenant, why=str(error))
        return ended
    return ended.model_copy(update={"cleanup": False})


def _end(world: World, job: Job, ending: Ending, *, unless_held: bool) -> Transaction:
    transaction = leaving.end(world, job, ending, unless_held=unless_held)

    def applied() -> bool:
        now = read_job(world, job.id)
        states = {ending.state, ending.settles_to}
        return now is not None and now.state in states and now.fence == job.fence

    carry_out(world, transaction, applied)
    return transaction


def pause_job(world: World, job: Job, expired: Lease | None = None) -> Job:
    """QUEUED or PAUSING to PAUSED, then admit the tenant's next job.

    expired: the lease as read, when nobody is running the job any more. Returns the job as it is
    afterwards. Raises Rejected when it was moved meanwhile, Transient when nothing was written.
    """
    transaction, after = leaving.pause(job, expired)

    def applied() -> bool:
        now = read_job(world, job.id)
        return now is not None and now.state is State.PAUSED and now.fence == after.fence

    carry_out(world, transaction, applied)
    if job.has_slot:
        admit_held(world, job.tenant, job.lane)
    return after


def _ended(world: World, job: Job, ending: Ending) -> Job:
    return job.model_copy(
        update={
            "state": ending.state,
            "end_reason": ending.reason,
            "message": ending.message,
            "finished_at": world.runtime.now() if ending.state.terminal else None,
            "has_slot": False,
            "worker": None,
            "receipt": None,
            "waiting_reason": None,
            "cleanup": leaving.cleanup_left(leaving.replace_state(job, ending.for_good)),
        }
    )


def _measure(world: World, job: Job) -> None:
    world.telemetry.log(
        "job_ended",
        job_id=job.id,
        tenant=job.tenant,
        state=job.state.value,
        reason=job.end_reason,
        **job.counts.model_dump(),
    )
    if job.started_at is not None and job.finished_at is not None:
        taken = max(0, job.finished_at - job.started_at)
        world.telemetry.duration(
            Measure.JOB_DURATION, taken, lane=job.lane, operation=job.operation
        )
    if job.end_reason is EndReason.ATTEMPTS_EXHAUSTED:
        world.telemetry.count(Measure.ATTEMPTS_EXHAUSTED, lane=job.lane, operation=job.operation)


def admit_held(world: World, tenant: str, lane: Lane) -> int:
    """Give free slots to the tenant's oldest held jobs; returns how many were admitted.

    Never raises: recovery comes again while anybody is held.
    """
    admitted = 0
    try:
        page = world.store.query(Index.HELD, items.held_partition(tenant, lane), limit=MAX_ADMITTED)
        for found in page.found:
            try:
                job = read_job(world, str(found.item["id"]))
            except Undecodable as error:
                # Recovery buries it; those behind it need not wait for that.
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
    """For a job that was just held: between its being refused a slot and its being held, whoever
    freed one saw nobody wait. Never raises: recovery comes again while anybody is held."""
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
    transaction, after = placing.admit(world, job)

    def applied() -> bool:
        now = read_job(world, job.id)
        return now is not None and not now.held and now.dispatches == after.dispatches

    try:
        carry_out(world, transaction, applied)
    except Rejected as rejected:
        return SLOTS not in rejected.reasons
    send_now(world, after)
    tell_now(world, transaction)
    return True
