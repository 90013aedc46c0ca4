"""Beginning an attempt and keeping its lease, against late writes."""

from __future__ import annotations

import pytest

from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.attempt import begin_attempt, renew_lease
from handlers.jobs.transitions.pause import pause_transaction, request_stop
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import begin, fill, new_job, now, write


def test_a_beat_that_arrives_late_gives_no_queued_job_an_expiry() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    late = renew_lease(world, job)
    let_go = release_attempt(world, job, Release(give_back=True)).transaction
    write(world, let_go)
    with pytest.raises(Refused):
        write(world, late)
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.expires_at is None


def test_a_beat_that_arrives_late_gives_no_paused_job_an_expiry() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    late = renew_lease(world, job)
    write(world, request_stop(world, job, State.PAUSING).transaction)
    paused = pause_transaction(world, now(world, job)).transaction
    write(world, paused)
    with pytest.raises(Refused):
        write(world, late)


@pytest.mark.parametrize(
    ("position", "has_started", "worked_until", "worked"),
    [(2, True, None, 9000), (2, True, 4000, 500), (0, True, None, 500), (2, False, None, 500)],
)
def test_what_an_older_version_worked_on_has_its_whole_time_as_work(
    position: int,
    has_started: bool,  # noqa: FBT001  a parameter of the test
    worked_until: int | None,
    worked: int,
) -> None:
    world = memory_world()
    started = world.runtime.now() if has_started else None
    old = new_job(world, fill(world, 3)).model_copy(
        update={
            "position": position,
            "started_at": started,
            "worked_until": worked_until,
            "worked_ms": 500,
        }
    )
    world.runtime.sleep(9000)
    begun = begin_attempt(world, old, worker="w", receipt="r", expired=None)
    assert begun.after.worked_ms == worked
