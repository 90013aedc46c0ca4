"""The requests of clients to a job: cancel, pause, resume, retry. Each is answered at once; a
running job follows at its next chunk boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..storage.control_table import read_job, read_lease
from ..storage.transaction import Rejected, execute, retry_transient
from ..transitions.enqueue import first_fence, queued_job, requeue_job
from ..transitions.finish import Ending
from ..transitions.pause import request_stop
from ..transitions.quotas import ACTIVE, SLOTS, active_limit
from ..words.errors import Transient
from ..words.job import HistoryEntry, Job, Verb
from ..words.states import State
from .admission import admit_if_free
from .cleanup import release_if_held
from .dispatch import send_dispatch
from .finish import end_job, ending_of, pause_job
from .submit import Busy, TooMany

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..words.job import Lease
    from ..words.ports import World

MAX_TRIES: Final = 8


@dataclass(frozen=True)
class NotPossible:
    """The job's state does not allow it."""

    job: Job
    why: str


@dataclass(frozen=True)
class NoSuchJob:
    """The tenant has no such job."""


@dataclass(frozen=True)
class Unchanged:
    """The job is already what the request would make of it: a client repeats a verb, perhaps after
    a lost answer. Nothing was written."""

    job: Job


Answer = Job | Unchanged | NotPossible | NoSuchJob | Busy | TooMany
"""The job as it is after the request, or why it was refused. A plain job was changed, or will be
at its next chunk boundary."""


def cancel(world: World, tenant: str, job_id: str, by: str = "") -> Answer:
    """by: the verified caller, for the job's history. Raises Transient."""
    return _act_on_current(
        world,
        tenant,
        job_id,
        _cancel,
        HistoryEntry(verb=Verb.CANCEL, at=world.runtime.now(), by=by),
    )


def pause(world: World, tenant: str, job_id: str, by: str = "") -> Answer:
    """Raises Transient."""
    return _act_on_current(
        world, tenant, job_id, _pause, HistoryEntry(verb=Verb.PAUSE, at=world.runtime.now(), by=by)
    )


def resume(world: World, tenant: str, job_id: str, by: str = "") -> Answer:
    """Raises Transient."""
    return _act_on_current(
        world,
        tenant,
        job_id,
        _resume,
        HistoryEntry(verb=Verb.RESUME, at=world.runtime.now(), by=by),
    )


def retry(world: World, tenant: str, job_id: str, by: str = "") -> Answer:
    """Run a failed job again from its checkpoint, with fresh attempts, if its subject is free and
    there is something left to do. Raises Transient."""
    return _act_on_current(
        world, tenant, job_id, _retry, HistoryEntry(verb=Verb.RETRY, at=world.runtime.now(), by=by)
    )


def find(world: World, tenant: str, job_id: str) -> Job | None:
    """The tenant's job; another tenant's does not exist for it. Raises Transient, Undecodable."""
    job = retry_transient(world, lambda: read_job(world, job_id))
    return job if job is not None and job.tenant == tenant else None


def _act_on_current(
    world: World,
    tenant: str,
    job_id: str,
    act: Callable[[World, Job, HistoryEntry], Answer],
    entry: HistoryEntry,
) -> Answer:
    """Act on the job as it is; read it and act again when it was moved meanwhile."""
    for _ in range(MAX_TRIES):
        job = find(world, tenant, job_id)
        if job is None:
            return NoSuchJob()
        try:
            return act(world, job, entry)
        except Rejected:
            continue
    raise Transient("the job changed during every try")


def _cancel(world: World, job: Job, entry: HistoryEntry) -> Answer:
    match job.state:
        case State.QUEUED | State.PAUSED:
            return end_job(world, job, Ending(State.CANCELLED, entry=entry))
        case State.RUNNING | State.PAUSING:
            return _ask(world, job, State.CANCELLING, entry)
        case State.CANCELLING:
            return job
        case State.CANCELLED:
            return Unchanged(job)
        case State.SETTLING:
            return NotPossible(job, "its records are done; only effects are still open")
        case _:
            return NotPossible(job, "it has ended")


def _pause(world: World, job: Job, entry: HistoryEntry) -> Answer:
    match job.state:
        case State.QUEUED:
            return pause_job(world, job, entry=entry)
        case State.RUNNING:
            return _ask(world, job, State.PAUSING, entry)
        case State.PAUSING:
            return job
        case State.PAUSED:
            return Unchanged(job)
        case State.CANCELLING:
            return NotPossible(job, "it is being cancelled")
        case State.SETTLING:
            return NotPossible(job, "its records are done; only effects are still open")
        case _:
            return NotPossible(job, "it has ended")


def _resume(world: World, job: Job, entry: HistoryEntry) -> Answer:
    match job.state:
        case State.PAUSED:
            return _requeue(world, job, None, job.model_copy(update=job.noted(entry)))
        case State.QUEUED | State.RUNNING:
            return Unchanged(job)
        case State.PAUSING:
            return NotPossible(job, "wait until it is PAUSED, then resume it")
        case _:
            return NotPossible(job, "only a paused job can be resumed")


def _retry(world: World, job: Job, entry: HistoryEntry) -> Answer:
    if job.state in {State.QUEUED, State.RUNNING}:
        return Unchanged(job)
    if job.state is not State.FAILED:
        return NotPossible(job, "only a failed job can be retried")
    if job.retried_by is not None:
        return NotPossible(job, f"job {job.retried_by} already tries its failed records again")
    lease = retry_transient(world, lambda: read_lease(world, job))
    if lease is None:
        return NotPossible(job, "the lease of its subject is gone")
    if lease.job_id is not None and lease.job_id != job.id:
        holder = retry_transient(world, lambda: read_job(world, lease.job_id or ""))
        return Busy(lease.job_id, holder.state if holder else None)
    if job.total is not None and job.position >= job.total and _fails(job):
        return NotPossible(
            job,
            "all its records are done, and too many of them failed; "
            "send failed_only=true to try the failed ones again",
        )
    if lease.job_id is not None:
        # The process that ended it as undecodable died before it freed the subject.
        release_if_held(world, job)
    fence = first_fence(world, lease)
    fresh = job.model_copy(
        update={
            "attempt": 0,
            "retries": 0,
            "fence": fence,
            "finished_at": None,
            "end_reason": None,
            # It was asked for although it can only fail: the rest is tried, too.
            "stop_when_hopeless": False,
            # A live walk goes on, and may find more.
            "total": None if job.walked_to_its_end else job.total,
            **job.noted(entry),
        }
    )
    return _requeue(world, job, lease, fresh)


def _fails(job: Job) -> bool:
    """Whether the job fails by its tolerance, with the counts that it has."""
    return ending_of(job).for_good is State.FAILED


def _requeue(world: World, job: Job, lease: Lease | None, fresh: Job) -> Answer:
    """Queue the job again as ``fresh``, held if its tenant has no free slot."""
    try:
        after = queued_job(world, fresh, held=False)
        _write_requeue(world, job, after, lease)
    except Rejected as rejected:
        if not set(rejected.reasons) <= {SLOTS, ACTIVE}:
            raise
        if reason := rejected.reasons.get(ACTIVE):
            return TooMany(active_limit(world, reason.item))
        after = queued_job(world, fresh, held=True)
        try:
            _write_requeue(world, job, after, lease)
        except Rejected as refused:
            if set(refused.reasons) != {ACTIVE}:
                raise
            return TooMany(active_limit(world, refused.reasons[ACTIVE].item))
        admit_if_free(world, after)
        return after
    send_dispatch(world, after)
    return after


def _write_requeue(world: World, job: Job, after: Job, lease: Lease | None) -> None:
    execute(world, requeue_job(world, job, after, lease).transaction)


def _ask(world: World, job: Job, state: State, entry: HistoryEntry) -> Job:
    transition = request_stop(world, job, state, entry)
    execute(world, transition.transaction)
    return transition.after
