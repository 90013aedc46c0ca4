"""The protocol with one guard taken out at a time, to show that the simulation sees it gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from handlers.jobs.execution.attempt import _Attempt
from handlers.jobs.execution.decisions import (
    DeleteMessage,
    KeepMessage,
)
from handlers.jobs.execution.delivery import _DeliveryCheck
from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.execution.planning import plan_one
from handlers.jobs.execution.worker import _look_again
from handlers.jobs.lifecycle.cleanup import release_if_held
from handlers.jobs.lifecycle.dispatch import drop_dispatch, send_dispatch
from handlers.jobs.lifecycle.rollout import left_to_newer
from handlers.jobs.lifecycle.submit import _Submission
from handlers.jobs.storage.control_table import read_job, read_lease
from handlers.jobs.storage.transaction import Transition, _was_applied, retry_transient
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.chunk_commit import commit_chunk
from handlers.jobs.transitions.conditions import JOB, LEASE, job_as_read
from handlers.jobs.transitions.enqueue import admit_job, create_job
from handlers.jobs.transitions.finish import finish_job
from handlers.jobs.transitions.idempotency import uniqueness_rows
from handlers.jobs.transitions.pause import request_stop
from handlers.jobs.transitions.quotas import SLOTS
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.transitions.takeover import OLD_JOB, take_over
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import backoff_ms
from handlers.jobs.words.writes import Differs, Equals

from .mutating import everywhere, registry, rewriting, without

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.ports import World
    from handlers.jobs.words.writes import Write

MUTATIONS, mutation = registry()


# --- chunks -----------------------------------------------------------------------------------


@mutation
def no_fence_check_in_the_chunk_commit() -> AbstractContextManager[object]:
    return rewriting(commit_chunk, lambda writes: writes.__delitem__(LEASE))


@mutation
def no_position_check_in_the_chunk_commit() -> AbstractContextManager[object]:
    return rewriting(commit_chunk, lambda w: without(w, JOB, "position"))


@mutation
def no_state_check_in_the_chunk_commit() -> AbstractContextManager[object]:
    return rewriting(commit_chunk, lambda w: without(w, JOB, "state"))


@mutation
def no_state_check_when_a_client_asks_to_stop() -> AbstractContextManager[object]:
    return rewriting(request_stop, lambda w: without(w, JOB, "state"))


@mutation
def records_the_job_carries_already_are_changed_again() -> AbstractContextManager[object]:
    def unmarked(world: World, job: Job, work: Any, id_: str, record: Any) -> Any:
        fresh = None if record is None else replace(record, last_job_id=None)
        return plan_one(world, job, work, id_, fresh)

    return everywhere(plan_one, unmarked)


@mutation
def a_record_is_written_whatever_its_version() -> AbstractContextManager[object]:
    def untouched(self: RecordSchema, record: Any, job_id: str) -> Any:
        return (Differs(self.last_job_id, job_id),)

    return patch.object(RecordSchema, "_untouched", untouched)


# --- beginning and ending ---------------------------------------------------------------------


@mutation
def no_condition_on_the_job_when_an_attempt_begins() -> AbstractContextManager[object]:
    return rewriting(begin_attempt, lambda writes: without(writes, JOB))


@mutation
def no_condition_on_the_lease_when_an_attempt_begins() -> AbstractContextManager[object]:
    return rewriting(begin_attempt, lambda writes: without(writes, LEASE))


@mutation
def a_resuming_attempt_ignores_a_beat_in_between() -> AbstractContextManager[object]:
    return rewriting(begin_attempt, lambda w: without(w, LEASE, "expires_at"))


@mutation
def an_ended_job_is_ended_again() -> AbstractContextManager[object]:
    def change(writes: dict[str, Write]) -> None:
        without(writes, JOB)
        if LEASE in writes:
            without(writes, LEASE)

    return rewriting(finish_job, change)


@mutation
def messages_of_finished_jobs_are_deleted_at_once() -> AbstractContextManager[object]:
    return patch.object(_DeliveryCheck, "_finished", lambda self, job: DeleteMessage("finished"))


@mutation
def a_stale_clean_up_frees_the_subject() -> AbstractContextManager[object]:
    original = release_if_held

    def release(world: World, job: Job) -> None:
        lease = read_lease(world, job)
        original(world, job.model_copy(update={"fence": lease.fence if lease else 0}))

    return everywhere(original, release)


@mutation
def an_attempt_concludes_whatever_it_finds() -> AbstractContextManager[object]:
    def as_it_is(self: Any, job: Job) -> Any:
        return retry_transient(self.world, lambda: read_job(self.world, job.id))

    return patch.object(_Attempt, "_read_if_mine", as_it_is)


@mutation
def a_small_function_begins_a_bulk_job() -> AbstractContextManager[object]:
    """C71: the message's lane is not compared with the job's."""
    original = _DeliveryCheck._route

    def route(self: Any, job: Job) -> Any:
        here = replace(self, pointer=replace(self.pointer, lane=job.lane))
        return original(here, job)

    return patch.object(_DeliveryCheck, "_route", route)


@mutation
def a_job_waits_minutes_before_its_next_try() -> AbstractContextManager[object]:
    return everywhere(backoff_ms, lambda *_, **__: 240_000)


@mutation
def a_job_of_a_newer_version_fails_on_an_older_worker() -> AbstractContextManager[object]:
    return everywhere(left_to_newer, lambda *_: False)


@mutation
def a_keyed_request_is_not_remembered() -> AbstractContextManager[object]:
    return everywhere(uniqueness_rows, lambda *_: {})


@mutation
def a_message_is_given_up_without_a_fresh_one() -> AbstractContextManager[object]:
    def keep(world: World, delivery: Any, finding: Any) -> KeepMessage:
        return KeepMessage(finding.why, 0)

    return everywhere(_look_again, keep)


# --- heartbeat --------------------------------------------------------------------------------


@mutation
def stopping_the_heartbeat_does_not_wait() -> AbstractContextManager[object]:
    return patch.object(Heartbeat, "stop", lambda self: self._stop.set())


@contextmanager
def _concluded_first() -> Iterator[None]:
    stop, conclude = Heartbeat.stop, _Attempt.conclude

    def late(self: Any, job: Job, result: Any) -> Any:
        try:
            return conclude(self, job, result)
        finally:
            stop(self.heart)

    with (
        patch.object(Heartbeat, "stop", lambda self: None),
        patch.object(_Attempt, "conclude", late),
    ):
        yield


@mutation
def an_attempt_is_concluded_before_its_heartbeat_stops() -> AbstractContextManager[object]:
    return _concluded_first()


@mutation
def letting_go_does_not_raise_the_fence() -> AbstractContextManager[object]:
    original = release_attempt

    def release(world: World, job: Job, how: Release) -> Any:
        released = original(world, job, how)
        writes: dict[str, Any] = dict(released.transaction.writes)
        for role in (LEASE, JOB):
            writes[role] = replace(writes[role], set={**writes[role].set, "fence": job.fence})
        after = released.after.model_copy(update={"fence": job.fence})
        return Transition(replace(released.transaction, writes=writes), after)

    return everywhere(original, release)


# --- taking over ------------------------------------------------------------------------------


@mutation
def a_dead_holder_gets_no_grace() -> AbstractContextManager[object]:
    def may(self: Any, lease: Any, holder: Job) -> bool:
        running = holder.state in {State.RUNNING, State.CANCELLING}
        return running and (lease.expires_at or 0) <= self.world.runtime.now()

    return patch.object(_Submission, "_may_take_over", may)


@mutation
def a_takeover_does_not_end_the_old_job() -> AbstractContextManager[object]:
    return rewriting(take_over, lambda w: w.__delitem__(OLD_JOB))


@mutation
def a_takeover_ignores_a_holder_that_came_back() -> AbstractContextManager[object]:
    def change(writes: dict[str, Write]) -> None:
        without(writes, LEASE, "fence", "expires_at")
        without(writes, OLD_JOB)

    return rewriting(take_over, change)


@mutation
def a_subject_is_given_away_twice() -> AbstractContextManager[object]:
    return rewriting(create_job, lambda w: without(w, LEASE))


# --- slots and dispatches ---------------------------------------------------------------------


@mutation
def slots_are_taken_beyond_the_limit() -> AbstractContextManager[object]:
    def change(writes: dict[str, Write]) -> None:
        without(writes, SLOTS)

    return rewriting(create_job, change)


@mutation
def a_held_job_is_admitted_whatever_became_of_it() -> AbstractContextManager[object]:
    def change(writes: dict[str, Write]) -> None:
        without(writes, JOB)
        without(writes, LEASE)

    return rewriting(admit_job, change)


@contextmanager
def _row_first() -> Iterator[None]:
    original = send_dispatch

    def send_late(world: World, job: Job) -> bool:
        drop_dispatch(world, job.id, job.dispatches)
        return original(world, job)

    with everywhere(original, send_late):
        yield


@mutation
def a_dispatch_row_is_dropped_before_its_message_is_sent() -> AbstractContextManager[object]:
    return _row_first()


@mutation
def dispatch_numbers_are_used_twice() -> AbstractContextManager[object]:
    original = job_as_read

    def as_read(job: Job) -> Any:
        return tuple(c for c in original(job) if c != Equals("dispatches", job.dispatches))

    return everywhere(original, as_read)


# --- lost replies -----------------------------------------------------------------------------


@mutation
def a_lost_reply_counts_as_not_applied() -> AbstractContextManager[object]:
    return everywhere(_was_applied, lambda *_: False)


@mutation
def a_lost_reply_counts_as_applied() -> AbstractContextManager[object]:
    return everywhere(_was_applied, lambda *_: True)
