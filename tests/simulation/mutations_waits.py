"""What a waiting job is told, and who runs next: each rule taken out at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from handlers.jobs.execution.turns import FreeSlot, waiters_of
from handlers.jobs.lifecycle import waiting
from handlers.jobs.lifecycle.waiting import wait_of
from handlers.jobs.transitions.quotas import lane_use
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.job import Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.turns import Turns, Waiter

from .mutating import everywhere, registry

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from handlers.jobs.lifecycle.waiting import Wait
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.ports import World

MUTATIONS, mutation = registry()


# --- reasons ----------------------------------------------------------------------------------


@mutation
def a_job_that_gave_way_does_not_say_so() -> AbstractContextManager[object]:
    def release(world: World, job: Job, how: Release) -> Any:
        gave_way = how.reason is Waiting.SLICE
        return release_attempt(world, job, replace(how, reason=None) if gave_way else how)

    return everywhere(release_attempt, release)


@mutation
def a_job_waits_for_a_retry_that_is_due() -> AbstractContextManager[object]:
    return everywhere(wait_of, lambda job, _now: wait_of(job, 0))


@mutation
def a_lost_worker_is_not_told_of() -> AbstractContextManager[object]:
    return patch.object(waiting, "_lost_worker", lambda *_: None)


@mutation
def a_stopped_tenant_seems_to_be_at_its_limit() -> AbstractContextManager[object]:
    def use(*args: Any) -> Any:
        return replace(lane_use(*args), limit=1)

    return patch.object(waiting, "lane_use", use)


@mutation
def parked_effects_seem_to_be_on_their_way() -> AbstractContextManager[object]:
    def told(job: Job, now: int) -> Wait | None:
        wait = wait_of(job, now)
        settling = wait is not None and job.state is State.SETTLING
        return replace(wait, reason=Waiting.EFFECTS_OPEN) if wait and settling else wait

    return everywhere(wait_of, told)


# --- turns ------------------------------------------------------------------------------------


@mutation
def no_job_gives_way() -> AbstractContextManager[object]:
    return patch.object(Turns, "gives_way", lambda *_: False)


@mutation
def a_job_gives_way_to_nobody() -> AbstractContextManager[object]:
    def waiters(world: World, job: Job) -> Any:
        return [*waiters_of(world, job), Waiter("nobody", "none", 0)]

    return everywhere(waiters_of, waiters)


@mutation
def a_tenant_that_was_passed_over_is_not_next() -> AbstractContextManager[object]:
    return patch.object(Turns, "overdue", lambda *_: False)


@mutation
def no_slot_stands_free_for_who_is_next() -> AbstractContextManager[object]:
    return patch.object(FreeSlot, "waits", lambda *_: False)


@mutation
def a_slot_stands_free_for_ever() -> AbstractContextManager[object]:
    return patch.object(FreeSlot, "waits", lambda *_: True)
