"""Redriving dead letters. A message in a dead-letter queue is only a pointer, too: the state of its
job decides what is left to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.transaction import retry_transient
from ..words.errors import Transient, Undecodable
from ..words.job import OPERATOR, EndReason, Job
from ..words.messages import UnreadableMessage, message_for, read_pointer
from ..words.states import State
from . import control
from .cleanup import clean_up, release_if_held
from .submit import Busy, TooMany
from .undecodable import UndecodableResult, end_undecodable

if TYPE_CHECKING:
    from ..words.messages import Pointer
    from ..words.ports import Delivery, LaneQueue, World
    from ..words.writes import Item

NOT_AGAIN: Final = frozenset({EndReason.SUPERSEDED, EndReason.TAKEN_OVER})
"""Ends after which a redrive does not run the job again, since another job has worked on the
subject; a client may still retry the job itself."""
FAILS_AGAIN: Final = frozenset(
    {
        EndReason.BAD_UPLOAD,
        EndReason.UPLOAD_GONE,
        EndReason.PAYLOAD_GONE,
        EndReason.BAD_PARAMETERS,
        EndReason.BAD_QUERY,
        EndReason.UNDECODABLE,
    }
)
"""Ends by what the job itself is made of, which no attempt changes. An unknown operation is none of
them: the next deployment may know it."""


class Fate(StrEnum):
    RETRIED = "retried"
    """Its job had failed; it runs again with fresh attempts and a fresh message."""
    RESENT = "resent"
    """Its job was not finished; the message is back in its lane's queue."""
    DROPPED = "dropped"
    """Nothing is left to do; the message is gone."""
    REFUSED = "refused"
    """It stays in the dead-letter queue, for the reason given."""


@dataclass(frozen=True)
class Letter:
    """A dead letter and the job it points to, if both can be read."""

    delivery: Delivery
    pointer: Pointer | None
    job: Job | None
    problem: str = ""
    undecodable: Item | None = None
    """The job as it is stored, when it is there and cannot be read."""
    new_words: bool = False
    """It cannot be read because of words that a newer version may know."""

    @property
    def never_started(self) -> bool:
        """The queue gave up before any worker began: throttling, not a failure of the job."""
        return self.job is not None and self.job.started_at is None


@dataclass(frozen=True)
class Redriven:
    fate: Fate
    why: str


def read_letter(world: World, delivery: Delivery) -> Letter:
    """Join a dead letter with its job. Raises Transient."""
    try:
        pointer = read_pointer(delivery.body)
    except UnreadableMessage as error:
        return Letter(delivery, None, None, f"unreadable: {error}")
    item = retry_transient(world, lambda: world.store.get(control_table.job_key(pointer.job_id)))
    if item is None:
        return Letter(delivery, pointer, None, "no such job")
    try:
        return Letter(delivery, pointer, control_table.job_of(item))
    except Undecodable as error:
        problem = f"undecodable: {error}"
        return Letter(delivery, pointer, None, problem, item, error.new_words)


def redrive(
    world: World, dead_letters: LaneQueue, letter: Letter, *, force: bool = False
) -> Redriven:
    """Do what a dead letter's job needs; the message is deleted only when the job needs it no more.

    force: also run a job again that would fail again. Raises Transient, and Undecodable for a
    lease: then the message is still there, and doing it again does no harm.
    """
    redriven = _redrive_job(world, letter, force=force)
    if redriven.fate is not Fate.REFUSED:
        dead_letters.delete(letter.delivery.receipt)
    world.telemetry.log(
        "dead_letter_redriven",
        message_id=letter.delivery.message_id,
        job_id=letter.pointer.job_id if letter.pointer else None,
        fate=redriven.fate.value,
        why=redriven.why,
    )
    return redriven


def _redrive_job(world: World, letter: Letter, *, force: bool) -> Redriven:
    if letter.pointer is None:
        # Its job, if there is one, is found by recovery; this message can never help.
        return Redriven(Fate.DROPPED, letter.problem)
    if letter.undecodable is not None:
        return _end_undecodable(world, letter.pointer.job_id, letter.undecodable, letter)
    job = letter.job
    if job is None:
        return Redriven(Fate.DROPPED, letter.problem)
    match job.state:
        case State.FAILED:
            return _retry(world, job, force=force)
        case State.SUCCEEDED | State.CANCELLED:
            release_if_held(world, job)
            clean_up(world, job)
            return Redriven(Fate.DROPPED, f"the job is {job.state}")
        case State.SETTLING | State.PAUSED:
            return Redriven(Fate.DROPPED, f"the job is {job.state} and needs no message")
        case _:
            return _resend(world, job)


def _end_undecodable(world: World, job_id: str, item: Item, letter: Letter) -> Redriven:
    """End an undecodable job, as a delivery of its message would."""
    why = letter.problem
    match end_undecodable(world, job_id, item, why, new_words=letter.new_words):
        case UndecodableResult.DONE:
            return Redriven(Fate.DROPPED, why)
        case UndecodableResult.HELD:
            return Redriven(
                Fate.REFUSED, f"{why}; its lease has not expired, so a worker may still run it"
            )
        case UndecodableResult.LEFT:
            return Redriven(
                Fate.REFUSED, f"{why}; a newer version may know it: redrive it after the deployment"
            )
        case UndecodableResult.MOVED:
            return Redriven(Fate.REFUSED, f"{why}; it changed meanwhile, so redrive it again")


def _retry(world: World, job: Job, *, force: bool) -> Redriven:
    if job.end_reason in NOT_AGAIN:
        return Redriven(Fate.REFUSED, f"the job was {job.end_reason}")
    if not force and (why := _fails_again(job)):
        return Redriven(Fate.REFUSED, f"the job would fail again, unless forced: {why}")
    answer = control.retry(world, job.tenant, job.id, OPERATOR)
    match answer:
        case Job():
            return Redriven(Fate.RETRIED, "the job had failed and will run again")
        case control.Unchanged():
            return Redriven(Fate.RETRIED, "another request has retried the job meanwhile")
        case Busy():
            return Redriven(Fate.REFUSED, f"job {answer.job_id} holds its subject")
        case TooMany():
            return Redriven(Fate.REFUSED, answer.why)
        case control.NotPossible(_, why):
            return Redriven(Fate.REFUSED, why)
        case control.NoSuchJob():
            return Redriven(Fate.DROPPED, "no such job")


def _fails_again(job: Job) -> str | None:
    """Why another run of a failed job cannot succeed; None when it can."""
    if job.end_reason in FAILS_AGAIN:
        return job.message or f"it ended as {job.end_reason}"
    if job.hopeless and job.not_tried:
        return job.message or f"{job.failed} of its records failed, more than it tolerates"
    return None


def _resend(world: World, job: Job) -> Redriven:
    """The same body, and the group of its tenant, like on every other send path."""
    if job.held:
        return Redriven(Fate.DROPPED, "the job is held; a message is sent when it is admitted")
    if world.queues[job.lane].send([message_for(job)]):
        raise Transient("the queue did not take the message")
    return Redriven(Fate.RESENT, f"the job is {job.state}")
