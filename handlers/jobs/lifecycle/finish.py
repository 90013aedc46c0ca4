"""Bringing a job to its end or to a pause, and what follows: the slot's next user, clean-up.

The process that frees a slot admits the tenant's next held job; recovery makes up for a crash in
between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events.rows import publish_now
from ..storage.transaction import Rejected, execute
from ..transitions.finish import Ending, finish_job
from ..transitions.pause import pause_transaction
from ..transitions.quotas import SLOTS
from ..words.errors import Transient
from ..words.job import EndReason, Job
from ..words.metrics import Metric
from ..words.states import State
from .admission import admit_held
from .cleanup import clean_up

if TYPE_CHECKING:
    from ..storage.transaction import Transition
    from ..words.job import HistoryEntry, Lease
    from ..words.ports import World


def ending_of(job: Job) -> Ending:
    """How a job ends whose records are all done, or that is hopeless: its counts and its tolerance
    decide, and its effects may still have to be waited for."""
    failed = job.too_many_failed
    state = State.FAILED if failed else State.SUCCEEDED
    reason = EndReason.TOO_MANY_FAILED if failed else None
    message = _why_hopeless(job) if job.position != job.total else ""
    if job.effects_open or job.effects_parked:
        return Ending(State.SETTLING, reason, message, settles_to=state)
    return Ending(state, reason, message)


def out_of_attempts(job: Job, expired: Lease | None) -> Ending:
    """How a job ends whose attempts are used up. It names the end of the last one.

    expired: the lease as read, when the last worker died."""
    silent = "" if expired is None else "its worker stopped without a word"
    last = job.message or silent
    message = f"{job.attempt} attempts ended early" + (f", the last one: {last}" if last else "")
    return Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED, message, expired=expired)


def _why_hopeless(job: Job) -> str:
    """One sentence about a job that ends before its last record."""
    tolerated = f"{job.failed} records failed, and at most {job.tolerated_failure_percent} % may"
    if job.total is None:
        return f"{tolerated}; the records after them were not tried"
    return f"{tolerated} of {job.total}; {job.total - job.position} were not tried"


def end_job(world: World, job: Job, ending: Ending) -> Job:
    """End the job, then admit the tenant's next one and clean up what can be cleaned now.

    Returns the job as it is afterwards. Raises Rejected when it was moved meanwhile, Transient
    when nothing was written. What fails after the end itself is left to recovery.
    """
    others_wait = False
    try:
        transition = _end(world, job, ending, unless_held=True)
    except Rejected as rejected:
        if set(rejected.reasons) != {SLOTS}:
            raise
        others_wait = True
        transition = _end(world, job, ending, unless_held=False)
    ended = transition.after
    _measure(world, ended)
    if others_wait:
        admit_held(world, job.tenant, job.lane)
    publish_now(world, transition.transaction)
    try:
        clean_up(world, ended)
    except Transient as error:
        world.telemetry.log("clean_up_left", job_id=job.id, tenant=job.tenant, why=str(error))
        return ended
    return ended.model_copy(update={"cleanup": False})


def _end(world: World, job: Job, ending: Ending, *, unless_held: bool) -> Transition:
    transition = finish_job(world, job, ending, unless_held=unless_held)
    execute(world, transition.transaction)
    return transition


def pause_job(
    world: World, job: Job, expired: Lease | None = None, entry: HistoryEntry | None = None
) -> Job:
    """QUEUED or PAUSING to PAUSED, then admit the tenant's next job.

    expired: the lease as read, when no worker runs the job any more. entry: the client's
    request. Returns the job as it is afterwards. Raises Rejected when it was moved
    meanwhile, Transient when nothing was written.
    """
    transition = pause_transaction(world, job, expired, entry)
    execute(world, transition.transaction)
    if job.has_slot:
        admit_held(world, job.tenant, job.lane)
    return transition.after


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
        world.telemetry.duration(Metric.JOB_DURATION, taken, lane=job.lane, operation=job.operation)
    if job.end_reason is EndReason.ATTEMPTS_EXHAUSTED:
        world.telemetry.count(Metric.ATTEMPTS_EXHAUSTED, lane=job.lane, operation=job.operation)
