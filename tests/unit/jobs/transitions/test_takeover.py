"""A new job that takes the subject of a dead one."""

from __future__ import annotations

import pytest

from handlers.jobs.lifecycle import submit
from handlers.jobs.transitions.pause import request_stop
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import begin, fill, new_job, now, write


def test_a_takeover_of_a_cancelled_job_leaves_a_note_to_delete_its_id_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submit, "INLINE_ID_BYTES", 1)
    world = memory_world()
    ids = fill(world, 3)
    job = begin(world, new_job(world, ids))
    write(world, request_stop(world, job, State.CANCELLING).transaction)
    world.runtime.sleep(60_000)
    new_job(world, ids)
    old = now(world, job)
    assert (old.state, old.cleanup) == (State.CANCELLED, True)
