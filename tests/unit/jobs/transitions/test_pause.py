"""Pausing and asking to stop, as transactions."""

from __future__ import annotations

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.transitions.pause import note_request, pause_transaction, request_stop
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.job import HistoryEntry, Verb
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import memory_world
from tests.support.jobs import begin, fill, lease_of, new_job, now, write


def test_a_paused_job_keeps_its_subject_without_an_expiry_and_gives_its_attempt_back() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    write(world, request_stop(world, job, State.PAUSING).transaction)
    asked = now(world, job)
    transition = pause_transaction(world, asked)
    write(world, transition.transaction)
    paused = now(world, job)
    assert paused == transition.after
    assert (paused.state, paused.attempt, paused.has_slot) == (State.PAUSED, 0, False)
    assert paused.fence == asked.fence + 1
    lease = lease_of(world, job)
    assert (lease.job_id, lease.fence, lease.expires_at) == (job.id, paused.fence, None)
    assert transition.transaction.applied(world)


def test_a_pause_of_a_job_that_began_meanwhile_is_refused() -> None:
    world = memory_world()
    queued = new_job(world, fill(world, 1))
    pause = pause_transaction(world, queued).transaction
    begin(world, queued)
    with pytest.raises(Refused):
        write(world, pause)
    assert not pause.applied(world)


@pytest.mark.parametrize("state", [State.PAUSING, State.CANCELLING])
def test_a_request_is_applied_only_as_long_as_it_stands(state: State) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    request = request_stop(world, job, state).transaction
    assert not request.applied(world)
    write(world, request)
    assert request.applied(world)
    assert now(world, job).state is state
    with pytest.raises(Refused):
        write(world, request)


def test_a_request_is_recorded_on_a_job_of_an_older_version_too() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    entry = HistoryEntry(verb=Verb.RESUME, at=1, by="me")
    without = Update(control_table.job_key(job.id), remove=("verbs", "history"))
    world.store.transact("older", [without])
    noted = note_request(world, job, entry)
    write(world, noted)
    assert now(world, job).history == (entry,)
    with pytest.raises(Refused):
        write(world, noted)
