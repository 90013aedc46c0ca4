"""Ending a job frees its subject and its slot, once."""

from __future__ import annotations

import pytest

from handlers.jobs.events.rows import EVENT_ROLE
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.finish import Ending, cleanup_left, finish_job
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.job import EndReason, Lane, Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job, now, write


def test_an_end_frees_subject_and_slot_and_a_second_one_is_refused() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    end = finish_job(world, job, Ending(State.SUCCEEDED))
    write(world, end.transaction)
    assert now(world, job) == end.after
    assert lease_of(world, job).job_id is None
    slots = control_table.slots_key(TENANT, Lane.SMALL)
    assert world.store.get(slots) == {"in_flight": 0}
    with pytest.raises(Refused):
        write(world, end.transaction)
    assert world.store.get(slots) == {"in_flight": 0}


def test_a_superseded_job_leaves_the_newer_lease_alone() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    newer = Update(control_table.lease_key(TENANT, job.subject), set={"job_id": "newer"})
    world.store.transact("newer", [newer])
    ending = Ending(State.FAILED, EndReason.SUPERSEDED, owns_lease=False)
    write(world, finish_job(world, job, ending).transaction)
    assert now(world, job).state is State.FAILED
    assert lease_of(world, job).job_id == "newer"


@pytest.mark.parametrize(
    ("ending", "judged", "meanwhile"),
    [
        (Ending(State.SUCCEEDED), 0, 1),
        (Ending(State.SETTLING, settles_to=State.SUCCEEDED), 1, 0),
    ],
)
def test_an_end_is_refused_when_an_effect_came_or_went(
    ending: Ending, judged: int, meanwhile: int
) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    key = control_table.job_key(job.id)
    world.store.transact("judged", [Update(key, set={"effects_open": judged})])
    end = finish_job(world, now(world, job), ending).transaction
    world.store.transact("meanwhile", [Update(key, set={"effects_open": meanwhile})])
    with pytest.raises(Refused):
        write(world, end)


def test_a_job_that_only_waits_for_parked_effects_says_so_and_has_not_ended() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    ending = Ending(State.SETTLING, settles_to=State.SUCCEEDED)
    parked = job.model_copy(update={"effects_parked": 1})
    after = finish_job(world, parked, ending).after
    assert (after.waiting_reason, after.finished_at) == (Waiting.EFFECTS_PARKED, None)
    open_ = job.model_copy(update={"effects_open": 1})
    assert finish_job(world, open_, ending).after.waiting_reason is None


def test_a_failed_jobs_id_list_stays_for_a_retry() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1)).model_copy(update={"payload": "ids/1"})
    ends = (State.SUCCEEDED, State.CANCELLED, State.FAILED)
    assert [cleanup_left(job, end) for end in ends] == [True, True, False]
    assert not cleanup_left(job.model_copy(update={"payload": None}), State.SUCCEEDED)


@pytest.mark.parametrize(
    ("ending", "tells"),
    [
        (Ending(State.SUCCEEDED), True),
        (Ending(State.FAILED), True),
        (Ending(State.SETTLING, settles_to=State.SUCCEEDED), False),
    ],
)
def test_a_job_that_settles_does_not_say_that_it_has_ended(ending: Ending, *, tells: bool) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    job = job.model_copy(update={"notify": "https://example.com/hook"})
    roles = finish_job(world, job, ending).transaction.writes
    assert any(role.startswith(EVENT_ROLE) for role in roles) is tells


@pytest.mark.parametrize(
    ("ending", "effects_open", "reason"),
    [
        (Ending(State.SETTLING, settles_to=State.SUCCEEDED), 0, Waiting.EFFECTS_PARKED),
        (Ending(State.SETTLING, settles_to=State.SUCCEEDED), 1, None),
        (Ending(State.SUCCEEDED), 0, None),
    ],
)
def test_only_a_job_that_settles_with_parked_effects_alone_waits_for_them(
    ending: Ending, effects_open: int, reason: Waiting | None
) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    job = job.model_copy(update={"effects_open": effects_open, "effects_parked": 1})
    assert finish_job(world, job, ending).after.waiting_reason is reason
