"""The questions about a delivered message. Their order is the protocol, the same in both lanes.

Is it a message, is there a job, is it finished, whose is the subject, is a worker running it, and
only then: begin. The answer is a value; ``worker.on_message`` acts on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..events.rows import publish_now
from ..lifecycle.cleanup import clean_up, release_if_held
from ..lifecycle.finish import end_job, out_of_attempts, pause_job
from ..lifecycle.rollout import STAMP, left_to_newer
from ..lifecycle.undecodable import UndecodableResult, end_undecodable
from ..storage import control_table
from ..storage.control_table import read_job, read_lease
from ..storage.transaction import Rejected, execute, retry_transient
from ..transitions.attempt import begin_attempt, store_receipt
from ..transitions.conditions import LEASE
from ..transitions.finish import Ending
from ..words.errors import JobFailed, Undecodable
from ..words.job import EndReason, Job, Lane, Lease
from ..words.messages import Pointer, UnreadableMessage, read_pointer
from ..words.metrics import Metric
from ..words.states import State
from ..words.timing import SECOND
from .decisions import DeleteMessage, KeepMessage, LookAgain, RunAttempt, renewed
from .planning import check_understood
from .turns import PUT_OFF, is_put_off, receives_run_short

if TYPE_CHECKING:
    from ..words.ports import Delivery, World
    from ..words.writes import Key
    from .decisions import Decision, Finding
    from .stopping import Worker

NOT_UNDERSTOOD: Final = "not understood: left to a newer version"
MAX_READS: Final = 5
"""How often a job is read for one delivery while other processes move it."""


def find_out(world: World, delivery: Delivery, worker: Worker) -> Finding:
    """Begin the attempt that the message's job needs, or decide about the message without one.

    Ends, pauses or cleans up a job that needs no attempt. Raises Transient.
    """
    try:
        pointer = read_pointer(delivery.body)
    except UnreadableMessage as error:
        world.telemetry.count(Metric.UNREADABLE_MESSAGES)
        world.telemetry.log("message_unreadable", message_id=delivery.message_id, why=str(error))
        return DeleteMessage("unreadable")
    return _DeliveryCheck(world, delivery, worker, pointer).find_out()


class _JobMoved(Exception):
    """The job changed between reading and writing; read it again."""


@dataclass(frozen=True)
class _DeliveryCheck:
    """The questions about one delivery, asked again while other processes move its job."""

    world: World
    delivery: Delivery
    worker: Worker
    pointer: Pointer

    def find_out(self) -> Finding:
        for _ in range(MAX_READS):
            item = retry_transient(self.world, lambda: self.world.store.get(self._key))
            if item is None:
                return DeleteMessage("no such job")
            try:
                return self._route(control_table.job_of(item))
            except Undecodable as error:
                match end_undecodable(
                    self.world,
                    self.pointer.job_id,
                    item,
                    str(error),
                    new_words=error.new_words,
                ):
                    case UndecodableResult.DONE:
                        return DeleteMessage("undecodable")
                    case UndecodableResult.HELD:
                        # By then its worker has beaten again, or its lease has expired.
                        wait = self.world.timing.lane(self.pointer.lane).visibility
                        return KeepMessage("undecodable, but its lease has not expired", wait)
                    case UndecodableResult.LEFT:
                        return LookAgain(NOT_UNDERSTOOD)
                    case UndecodableResult.MOVED:
                        continue
            except _JobMoved:
                continue
        return LookAgain("busy")

    @property
    def _key(self) -> Key:
        return control_table.job_key(self.pointer.job_id)

    def _route(self, job: Job) -> Finding:
        match job.state:
            case State.SUCCEEDED | State.FAILED | State.CANCELLED:
                return self._finished(job)
            case State.SETTLING:
                return DeleteMessage("settling: effects have their own rows")
            case State.PAUSED:
                return DeleteMessage("paused: resuming sends a new message")
            case _ if job.lane is not self.pointer.lane:
                # Also when the other lane's worker is dead: this one has neither its time nor the
                # queue that its receipts belong to.
                return DeleteMessage("promoted: the other lane has its message")
            case State.QUEUED:
                return self._queued(job)
            case _:
                return self._active(job)

    def _finished(self, job: Job) -> Decision:
        """Clean up first: a message deleted before that leaves the subject stuck for ever."""
        release_if_held(self.world, job)
        clean_up(self.world, job)
        return DeleteMessage("finished")

    def _queued(self, job: Job) -> Finding:
        if job.held:
            return DeleteMessage("held: admission sends a new message")
        wait = (job.retry_at or 0) - self.world.runtime.now()
        if wait > 0:
            return KeepMessage("waiting for retry", -(-wait // SECOND))
        put_off, contended = is_put_off(self.world, job, self.delivery, self.worker.slot)
        if put_off and (decision := self._put_off(job)) is not None:
            return decision
        return self._begin(job, None, contended=contended)

    def _put_off(self, job: Job) -> Decision | None:
        """None when only a fresh message could be put off, and none could be sent."""
        why = "put off for a job whose turn it is"
        self._log("put_off", job)
        if not receives_run_short(self.world, job, self.delivery):
            return KeepMessage(why, PUT_OFF)
        return renewed(self.world, self.delivery, why)

    def _active(self, job: Job) -> Finding:
        lease = retry_transient(self.world, lambda: read_lease(self.world, job))
        if lease is None or lease.job_id != job.id:
            return self._superseded(job)
        if lease.expires_at is None or lease.fence != job.fence:
            raise _JobMoved
        if lease.expires_at > self.world.runtime.now():
            return self._redelivered(job)
        match job.state:
            case State.CANCELLING:
                return self._end(job, Ending(State.CANCELLED, expired=lease))
            case State.PAUSING:
                return self._pause(job, lease)
            case _:
                return self._begin(job, lease)

    def _redelivered(self, job: Job) -> Decision:
        """A worker is running the job: keep this delivery hidden, and store its receipt for that
        worker's heartbeat."""
        self.world.telemetry.count(
            Metric.REDELIVERIES_OF_ACTIVE, lane=job.lane, operation=job.operation
        )
        self._log("redelivery_extended", job)
        try:
            execute(self.world, store_receipt(job, self.delivery.receipt))
        except Rejected:
            raise _JobMoved from None
        return KeepMessage("held by live owner", self.world.timing.lane(job.lane).visibility)

    def _superseded(self, job: Job) -> Finding:
        """Another job holds the subject: this one is over, and must not touch that lease."""
        self._log("superseded", job)
        if job.state is State.CANCELLING:
            return self._end(job, Ending(State.CANCELLED, owns_lease=False))
        if job.state is State.PAUSING:
            raise _JobMoved  # no job takes over the subject of a pausing one
        return self._end(job, Ending(State.FAILED, EndReason.SUPERSEDED, owns_lease=False))

    def _begin(self, job: Job, expired: Lease | None, *, contended: bool = False) -> Finding:
        if job.attempt >= self.world.timing.lane(job.lane).max_attempts:
            return self._end(job, out_of_attempts(job, expired))
        if (other := self._not_understood(job, expired)) is not None:
            return other
        transition = begin_attempt(
            self.world,
            job,
            worker=self.worker.name,
            receipt=self.delivery.receipt,
            expired=expired,
        )
        try:
            execute(self.world, transition.transaction)
        except Rejected as rejected:
            return self._not_begun(job, rejected)
        self._measure_start(job, transition.after)
        publish_now(self.world, transition.transaction)
        return RunAttempt(transition.after, contended)

    def _not_understood(self, job: Job, expired: Lease | None) -> Finding | None:
        """None for a job that this version understands. Another one is left to newer workers first:
        no attempt begins that could only fail."""
        seconds = self.world.timing.rollout
        if not seconds:
            return None
        try:
            check_understood(self.world, job)
        except JobFailed as error:
            stamp = {} if (since := job.not_understood_since) is None else {STAMP: since}
            read = {"state": job.state.value, "fence": job.fence, **stamp}
            if left_to_newer(self.world, job.id, read, str(error)):
                return LookAgain(NOT_UNDERSTOOD)
            why = f"{error}; no worker that received the job in {seconds:g} s understands it"
            ending = Ending(State.FAILED, EndReason(error.reason), why, expired=expired)
            return self._end(job, ending)
        return None

    def _not_begun(self, job: Job, rejected: Rejected) -> Finding:
        if LEASE not in rejected.reasons:
            raise _JobMoved from rejected
        lease = retry_transient(self.world, lambda: read_lease(self.world, job))
        if lease is not None and lease.job_id == job.id:
            raise _JobMoved from rejected
        # The subject is free or another job's, but this job was unfinished when it was read: it may
        # have ended since.
        now = retry_transient(self.world, lambda: read_job(self.world, job.id))
        if now is None or now.state is not job.state or now.fence != job.fence:
            raise _JobMoved from rejected
        return self._superseded(now)

    def _end(self, job: Job, ending: Ending) -> Finding:
        try:
            ended = end_job(self.world, job, ending)
        except Rejected:
            raise _JobMoved from None
        if ended.cleanup:
            return LookAgain("clean-up left")
        return DeleteMessage(ending.state.value.lower())

    def _pause(self, job: Job, lease: Lease) -> Decision:
        try:
            pause_job(self.world, job, lease)
        except Rejected:
            raise _JobMoved from None
        return DeleteMessage("paused")

    def _measure_start(self, job: Job, begun: Job) -> None:
        self._log("attempt_begun", begun)
        if job.started_at is not None:
            return
        lane, operation = begun.lane, begun.operation
        telemetry = self.world.telemetry
        telemetry.duration(Metric.DWELL, begun.dwell_ms or 0, lane=lane, operation=operation)
        if lane is Lane.SMALL:
            self.worker.started(begun.dwell_ms or 0)
        if self.delivery.receive_count == 1:
            waited = max(0, self.world.runtime.now() - self.delivery.sent_at)
            telemetry.duration(Metric.QUEUE_DWELL, waited, lane=lane, operation=operation)

    def _log(self, action: str, job: Job) -> None:
        self.world.telemetry.log(
            action,
            job_id=job.id,
            tenant=job.tenant,
            lane=job.lane.value,
            attempt=job.attempt,
            fence=job.fence,
            receive_count=self.delivery.receive_count,
        )
