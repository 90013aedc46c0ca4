"""Conditions of the writes that give a job its subject or take it away: create, requeue, admission,
dispatch, takeover, pause, end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.transitions.enqueue import (
    admit_job,
    create_job,
    dispatch_again,
    queued_job,
    requeue_job,
)
from handlers.jobs.transitions.finish import Ending, finish_job
from handlers.jobs.transitions.pause import pause_transaction, request_stop
from handlers.jobs.transitions.takeover import take_over
from handlers.jobs.words.states import State
from handlers.testing.runtime import START
from handlers.testing.world import memory_world
from tests.support.guards import (
    GONE,
    Asked,
    Case,
    Setup,
    absent,
    accept,
    by_name,
    check,
    lost_lease,
    moved_job,
    not_covered,
    refuse,
    sends,
)
from tests.support.jobs import begin, fill, lease_of, new_job, write
from tests.support.quotas import made, world_of

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld

LIMITS: Final = memory_world().limits
SLOTS: Final = LIMITS.tenant_slots_small
ACTIVE: Final = LIMITS.max_active_jobs_per_tenant
SECOND: Final = START // 1000
"""When a fresh world's clock stands."""


def queued() -> tuple[MemoryWorld, Job]:
    world = memory_world()
    return world, new_job(world, fill(world, 3))


def running() -> tuple[MemoryWorld, Job]:
    world, job = queued()
    return world, begin(world, job)


def stopping(state: State) -> tuple[MemoryWorld, Job]:
    world, job = running()
    asked = request_stop(world, job, state)
    write(world, asked.transaction)
    return world, asked.after


def failed() -> tuple[MemoryWorld, Job]:
    world, job = running()
    return world, end_job(world, job, Ending(State.FAILED))


def create() -> Setup:
    """A job with everything that a create can write."""
    world, old = failed()
    fresh = {"id": "fresh", "subject": "another", "idempotency": "hash", "retry_of": old.id}
    job = queued_job(world, old.model_copy(update=fresh), held=False)
    return sends(world, create_job(world, job))


def requeue_failed() -> Setup:
    world, job = failed()
    after = queued_job(world, job.model_copy(update={"fence": job.fence + 9}), held=False)
    return sends(world, requeue_job(world, job, after, lease_of(world, job)))


def requeue_paused() -> Setup:
    world, job = queued()
    paused = pause_transaction(world, job)
    write(world, paused.transaction)
    after = queued_job(world, paused.after, held=False)
    return sends(world, requeue_job(world, paused.after, after, None))


def admit() -> Setup:
    world = world_of()
    first, _, waiting = (made(world, subject) for subject in ("a", "b", "c"))
    assert waiting.held
    write(world, finish_job(world, first, Ending(State.CANCELLED)).transaction)
    return sends(world, admit_job(world, waiting))


def dispatch_queued() -> Setup:
    world, job = queued()
    return sends(world, dispatch_again(world, job, lease_of(world, job)))


def dispatch_running() -> Setup:
    world, job = running()
    return sends(world, dispatch_again(world, job, lease_of(world, job)))


def take_subject() -> Setup:
    world, old = running()
    job = queued_job(
        world, old.model_copy(update={"id": "fresh", "fence": old.fence + 9}), held=False
    )
    return sends(world, take_over(world, job, lease_of(world, old), old))


def pause_queued() -> Setup:
    world, job = queued()
    return sends(world, pause_transaction(world, job))


def pause_expired() -> Setup:
    world, job = stopping(State.PAUSING)
    return sends(world, pause_transaction(world, job, lease_of(world, job)))


def ask_cancelling() -> Setup:
    world, job = running()
    return sends(world, request_stop(world, job, State.CANCELLING))


def end_succeeded() -> Setup:
    world, job = running()
    return sends(world, finish_job(world, job, Ending(State.SUCCEEDED), unless_held=True))


def end_settling() -> Setup:
    world, job = running()
    ending = Ending(State.SETTLING, settles_to=State.SUCCEEDED)
    return sends(world, finish_job(world, job, ending))


def end_expired() -> Setup:
    world, job = stopping(State.CANCELLING)
    ending = Ending(State.CANCELLED, expired=lease_of(world, job))
    return sends(world, finish_job(world, job, ending))


def end_superseded() -> Setup:
    world, job = running()
    return sends(world, finish_job(world, job, Ending(State.FAILED, owns_lease=False)))


SETUPS: Final = by_name(
    create,
    requeue_failed,
    requeue_paused,
    admit,
    dispatch_queued,
    dispatch_running,
    take_subject,
    pause_queued,
    pause_expired,
    ask_cancelling,
    end_succeeded,
    end_settling,
    end_expired,
    end_superseded,
)


def limit(setup: str, item: str, count: str, most: int) -> list[Case]:
    """A count below its limit: the deployment's, or the tenant's own, higher or lower one."""
    return [
        accept(setup, item, **{count: most - 1}),
        refuse(setup, item, **{count: most}),
        accept(setup, item, **{count: most, "own_limit": most + 1}),
        refuse(setup, item, **{count: most + 1, "own_limit": most + 1}),
        refuse(setup, item, **{count: most - 1, "own_limit": most - 1}),
        accept(setup, item, **{count: GONE, "own_limit": most + 1}),
        absent(setup, item, refused=False),
        refuse(setup, item, **{count: GONE, "own_limit": 0}),
    ]


def room(setup: str, most: int = SLOTS) -> list[Case]:
    return limit(setup, "SLOTS#small", "in_flight", most)


def none_held(setup: str) -> list[Case]:
    return [
        refuse(setup, "SLOTS#small", held=1),
        accept(setup, "SLOTS#small", held=0),
        accept(setup, "SLOTS#small", held=GONE),
    ]


CASES: Final[list[Case]] = [
    refuse("create", "LEASE", job_id="another"),
    refuse("create", "LEASE", fence=Asked(0)),
    accept("create", "LEASE", fence=Asked(-1)),
    refuse("create", "JOB", state=State.QUEUED.value),
    *room("create"),
    *none_held("create"),
    *limit("create", "ACTIVE", "jobs", ACTIVE),
    refuse("create", "REQUEST", job_id="another", expires_at_seconds=SECOND + 1),
    accept("create", "REQUEST", job_id="another", expires_at_seconds=SECOND),
    refuse("create", "JOB 2", retried_by="another"),
    refuse("create", "JOB 2", state=State.QUEUED.value),
    refuse("create", "JOB 2", state=State.SETTLING.value),
    accept("create", "JOB 2", state=State.SUCCEEDED.value),
    accept("create", "JOB 2", state=State.CANCELLED.value),
    refuse("requeue failed", "LEASE", job_id="another"),
    refuse("requeue failed", "LEASE", fence=Asked(1)),
    refuse("requeue failed", "LEASE", fence=Asked(-1)),
    *moved_job("requeue failed"),
    *room("requeue failed"),
    *none_held("requeue failed"),
    *limit("requeue failed", "ACTIVE", "jobs", ACTIVE),
    *lost_lease("requeue paused"),
    *moved_job("requeue paused"),
    *room("requeue paused"),
    *none_held("requeue paused"),
    *lost_lease("admit"),
    *moved_job("admit"),
    refuse("admit", "JOB", waiting_reason=GONE),
    *room("admit", 2),
    accept("admit", "SLOTS#small", held=2),
    *lost_lease("dispatch queued"),
    refuse("dispatch queued", "LEASE", expires_at=START),
    *moved_job("dispatch queued"),
    *lost_lease("dispatch running"),
    refuse("dispatch running", "LEASE", expires_at=Asked(1)),
    refuse("dispatch running", "LEASE", expires_at=GONE),
    *moved_job("dispatch running"),
    *lost_lease("take subject"),
    refuse("take subject", "LEASE", expires_at=Asked(1)),
    *moved_job("take subject"),
    refuse("take subject", "JOB 2", state=State.QUEUED.value),
    refuse("take subject", "SLOTS#small", own_limit=0),
    accept("take subject", "SLOTS#small", own_limit=1),
    refuse("take subject", "ACTIVE", own_limit=0),
    accept("take subject", "ACTIVE", own_limit=1),
    *lost_lease("pause queued"),
    *moved_job("pause queued"),
    *lost_lease("pause expired"),
    refuse("pause expired", "LEASE", expires_at=Asked(1)),
    *moved_job("pause expired"),
    *moved_job("ask cancelling"),
    *lost_lease("end succeeded"),
    *moved_job("end succeeded"),
    refuse("end succeeded", "JOB", position=Asked(1)),
    refuse("end succeeded", "JOB", effects_open=1),
    refuse("end succeeded", "JOB", effects_parked=1),
    *none_held("end succeeded"),
    *lost_lease("end settling"),
    *moved_job("end settling"),
    refuse("end settling", "JOB", position=Asked(1)),
    refuse("end settling", "JOB", effects_open=Asked(1)),
    refuse("end settling", "JOB", effects_parked=Asked(1)),
    *lost_lease("end expired"),
    refuse("end expired", "LEASE", expires_at=Asked(1)),
    *moved_job("end expired"),
    refuse("end expired", "JOB", position=Asked(1)),
    accept("end expired", "JOB", effects_open=1),
    *moved_job("end superseded"),
    refuse("end superseded", "JOB", position=Asked(1)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_c80_a_change_of_a_subject_s_job_needs_its_conditions(case: Case) -> None:
    check(SETUPS, case)


def test_c80_each_condition_of_a_change_has_a_case() -> None:
    assert not_covered(SETUPS, CASES) == []
