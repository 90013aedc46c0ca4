"""One worker's run of a job, from the moment it began to the decision about its message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..effects.runner import EffectRunner
from ..lifecycle.admission import admit_held
from ..lifecycle.dispatch import send_dispatch
from ..lifecycle.finish import end_job, ending_of, pause_job
from ..selection.id_sources import source_of
from ..storage.control_table import read_job
from ..storage.transaction import Rejected, execute, retry_transient
from ..transitions.conditions import LEASE
from ..transitions.finish import Ending
from ..transitions.release import Release, release_attempt
from ..words.errors import (
    Crashed,
    Denied,
    JobFailed,
    OwnershipLost,
    QueryRefused,
    Transient,
    Undecodable,
    cause_of,
)
from ..words.job import EndReason, Lane, Waiting
from ..words.metrics import Metric
from ..words.states import State
from ..words.timing import SECOND, VISIBILITY_CAP, backoff_ms, ms
from .chunk_loop import ChunkLoop
from .decisions import DeleteMessage, KeepMessage
from .heartbeat import Heartbeat
from .planning import work_of
from .stopping import LoopEnd, StopReason
from .turns import Turn

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import Delivery, World
    from .decisions import Decision, RunAttempt
    from .stopping import Worker

MAX_CONCLUSIONS: Final = 5
"""How often the end of an attempt is tried when a cancel or pause moves the job meanwhile."""
LOST: Final = KeepMessage("ownership lost", None)


def run_attempt(world: World, begun: RunAttempt, delivery: Delivery, worker: Worker) -> Decision:
    """Run the attempt that the caller began, write how it ended, and decide about the message."""
    job = begun.job
    heart = Heartbeat(world, job, delivery, worker.hung)
    heart.start()
    # Half of the reserve is for effects in flight, the other half for writing how it ended.
    reserve = ms(world.timing.small_reserve)
    ends_by = None if worker.deadline is None else worker.deadline - reserve // 2
    runner = EffectRunner(
        world, job.lane, ends_by=ends_by, stopping=worker.stopping, moved=heart.moved
    )
    turn = Turn(world, job, contended=begun.contended)
    attempt = _Attempt(world, delivery, worker, heart, runner, turn, start=job.position)
    try:
        result = attempt.work(job)
        runner.stop(drain=isinstance(result, LoopEnd) and result.stop is None)
    finally:
        heart.stop()
    turn.close()
    try:
        return attempt.conclude(job, result)
    except (Transient, Undecodable) as error:
        # Nothing was written: the lease runs out, and a redelivery resumes at the checkpoint, or
        # ends a job that cannot be decoded.
        attempt.log("conclusion_left", job, why=str(error))
        return KeepMessage("dependency", None)


Result = LoopEnd | JobFailed | Transient


@dataclass(frozen=True)
class _Attempt:
    world: World
    delivery: Delivery
    worker: Worker
    heart: Heartbeat
    effects: EffectRunner
    turn: Turn
    start: int
    """The position this attempt began at."""

    # --- working ------------------------------------------------------------------------------

    def work(self, job: Job) -> Result:
        try:
            work = work_of(self.world, job)
            if job.unprepared:
                from .id_list import write_id_list  # noqa: PLC0415  not for a small job's start

                prepared = write_id_list(self.world, job, self._should_stop)
                if prepared.stop is not None:
                    return prepared
                job = prepared.job
            bulk = job.lane is Lane.BULK
            governor = self.worker.governor if bulk else None
            loop = ChunkLoop(
                governor.measured(self.world) if governor else self.world,
                work,
                source_of(self.world, job),
                self._should_stop_or_give_way,
                self.effects.add,
                moved=self.heart.moved,
                governor=governor,
                limiter=self.worker.limiter if bulk else None,
            )
            return loop.walk(job)
        except OwnershipLost:
            return LoopEnd(job, StopReason.LOST)
        except (JobFailed, Transient) as error:
            return error
        except Undecodable as error:
            # A newer version has changed the job meanwhile, and perhaps can go on with it.
            return Transient(str(error))
        except QueryRefused as error:
            return JobFailed(EndReason.BAD_QUERY, str(error))
        except Exception as error:  # noqa: BLE001  a bug costs an attempt, not the message
            self.log("attempt_crashed", job, error=error)
            return Crashed(f"the worker met an unexpected error ({type(error).__name__})")

    def _should_stop(self, job: Job) -> StopReason | None:
        now = self.world.runtime.now()
        self.heart.moved()
        if self.heart.lost:
            return StopReason.LOST
        if self.worker.stopping():
            return StopReason.SHUTDOWN
        timing = self.world.timing
        deadline = self.worker.deadline
        if deadline is not None and deadline - now < ms(timing.small_reserve):
            return StopReason.OUT_OF_TIME
        cap = self.delivery.first_received_at + VISIBILITY_CAP
        if cap - now < 2 * ms(timing.lane(job.lane).visibility):
            return StopReason.HAND_OVER
        return None

    def _should_stop_or_give_way(self, job: Job) -> StopReason | None:
        """Asked between chunks. An attempt that has done no chunk yet gives way to nobody, so that
        each gets on. (An id list is written in one piece: giving way would begin it again.)"""
        if stop := self._should_stop(job):
            return stop
        if job.position > self.start and self.turn.over(job):
            return StopReason.SLICE
        return None

    # --- concluding ---------------------------------------------------------------------------

    def conclude(self, job: Job, result: Result) -> Decision:
        """Write how the attempt ended. Raises Transient when that could not be written."""
        if isinstance(result, LoopEnd):
            if result.stop is StopReason.LOST:
                return self._lost(job)
            job = result.job
        if not isinstance(result, LoopEnd) or job.effects_open or job.effects_parked:
            # Only the store knows the checkpoint and how many effects are still open.
            now = self._read_if_mine(job)
            if now is None:
                return self._lost(job)
            job = now
        for _ in range(MAX_CONCLUSIONS):
            try:
                return self._conclude(job, result)
            except Rejected as rejected:
                if LEASE in rejected.reasons:
                    return self._lost(job)
                now = self._read_if_mine(job)
                if now is None:
                    return self._lost(job)
                job = now
        raise Transient("the job changed during every try")

    def _read_if_mine(self, job: Job) -> Job | None:
        """The job as it is now, or None when this attempt has lost it: the beginning of another
        attempt raises the fence, and the end of the job removes the worker."""
        now = retry_transient(self.world, lambda: read_job(self.world, job.id))
        if now is None or now.fence != job.fence or now.worker != self.worker.name:
            return None
        return now

    def _conclude(self, job: Job, result: Result) -> Decision:
        if job.state is State.CANCELLING:
            return self._end(job, Ending(State.CANCELLED))
        if job.state is State.PAUSING:
            return self._pause(job)
        if isinstance(result, JobFailed):
            return self._end(job, Ending(State.FAILED, EndReason(result.reason), str(result)))
        if isinstance(result, Transient):
            return self._retry_later(job, result)
        match result.stop:
            case None | StopReason.HOPELESS:
                return self._end(job, ending_of(job))
            case StopReason.OUT_OF_TIME:
                return self._go_on_with_fresh_message(job, result.stop, Lane.BULK)
            case StopReason.HAND_OVER | StopReason.SLICE:
                return self._go_on_with_fresh_message(job, result.stop)
            case _:
                return self._give_back(job)

    def _end(self, job: Job, ending: Ending) -> Decision:
        ended = end_job(self.world, job, ending)
        if ended.cleanup:
            return KeepMessage("clean-up left", 0, self.heart.receipt)
        return DeleteMessage(ending.state.value.lower(), self.heart.receipt)

    def _pause(self, job: Job) -> Decision:
        pause_job(self.world, job)
        self.log("paused", job)
        return DeleteMessage("paused", self.heart.receipt)

    def _retry_later(self, job: Job, error: Transient) -> Decision:
        """Release the job because of a dependency, to go on after a while. The attempt counts only
        after a crash of Fairlane's own code, or after very many retries without progress."""
        runtime, timing = self.world.runtime, self.world.timing
        retries = 1 + (job.retries if job.position == self.start else 0)
        spent = isinstance(error, Crashed) or retries > self.world.limits.max_retries
        wait = backoff_ms(
            retries - 1,
            base=timing.retry_base,
            cap=timing.retry_cap,
            random=runtime.random(),
            asked_ms=error.retry_after_ms,
        )
        self.log("retry_later", job, why=str(error), wait_ms=wait)
        if isinstance(error, Denied):
            self.world.telemetry.count(Metric.DENIED, lane=job.lane, operation=job.operation)
        down = isinstance(error, Denied) or (retries > 1 and not isinstance(error, Crashed))
        how = Release(
            not spent,
            retry_at=runtime.now() + wait,
            reason=Waiting.DEPENDENCY_DOWN if down else Waiting.RETRY,
            retries=retries,
            cause=cause_of(error),
        )
        if self._near_last_receive(job):
            # Recovery sends it when it is due.
            self._release(job, replace(how, fresh_message=True))
            return DeleteMessage("retry with a fresh message", self.heart.receipt)
        self._release(job, how)
        return KeepMessage("retry", -(-wait // SECOND), self.heart.receipt)

    def _give_back(self, job: Job) -> Decision:
        """The process was asked to stop: the attempt does not count, and the message is visible at
        once."""
        self.log("attempt_given_back", job, why=StopReason.SHUTDOWN.value)
        if self._near_last_receive(job):
            return self._go_on_with_fresh_message(job, StopReason.SHUTDOWN)
        self._release(job, Release(give_back=True))
        return KeepMessage(StopReason.SHUTDOWN.value, 0, self.heart.receipt)

    def _go_on_with_fresh_message(
        self, job: Job, stop: StopReason, lane: Lane | None = None
    ) -> Decision:
        self.log("handed_over", job, why=stop.value, to=(lane or job.lane).value)
        reason = Waiting.SLICE if stop is StopReason.SLICE else None
        after = self._release(
            job, Release(give_back=True, fresh_message=True, lane=lane, reason=reason)
        )
        send_dispatch(self.world, after)
        if lane is not None:
            admit_held(self.world, job.tenant, job.lane)
        return DeleteMessage(stop.value, self.heart.receipt)

    def _release(self, job: Job, how: Release) -> Job:
        transition = release_attempt(self.world, job, how)
        execute(self.world, transition.transaction)
        return transition.after

    def _near_last_receive(self, job: Job) -> bool:
        """Whether the queue may give up on the message after one more receive."""
        limit = self.world.timing.lane(job.lane).max_receive_count
        return self.delivery.receive_count >= limit - 1

    def _lost(self, job: Job) -> Decision:
        """Another attempt has the job, or another job the subject: touch nothing, not even the
        message."""
        self.world.telemetry.count(Metric.OWNERSHIP_LOST, lane=job.lane, operation=job.operation)
        self.log("ownership_lost", job)
        return LOST

    def log(self, action: str, job: Job, **fields: object) -> None:
        self.world.telemetry.log(
            action,
            job_id=job.id,
            tenant=job.tenant,
            lane=job.lane.value,
            attempt=job.attempt,
            fence=job.fence,
            position=job.position,
            **fields,
        )
