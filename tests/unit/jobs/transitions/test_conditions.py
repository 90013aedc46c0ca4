"""The conditions that several transactions share, each against what must not pass it."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.transitions.conditions import expiry_as_read, job_as_read, owns_lease
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.writes import Check, Key, Update, When
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import begin, fill, lease_of, new_job


def refused(world: MemoryWorld, key: Key, when: When, **moved: Any) -> bool:
    """Whether the condition, which held, is refused once these attributes have moved."""
    world.store.transact("before", [Check(key, when)])
    world.store.transact("moves", [Update(key, set=moved)])
    try:
        world.store.transact("after", [Check(key, when)])
    except Refused:
        return True
    return False


@pytest.mark.parametrize(
    "moved",
    [
        {"state": "CANCELLING"},
        {"fence": 99},
        {"attempt": 99},
        {"has_slot": False},
        {"dispatches": 99},
    ],
    ids=lambda moved: next(iter(moved)),
)
def test_a_job_that_moved_is_not_as_read(moved: dict[str, Any]) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    assert refused(world, control_table.job_key(job.id), job_as_read(job), **moved)


def test_a_job_whose_counts_moved_is_as_read() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    assert not refused(world, control_table.job_key(job.id), job_as_read(job), succeeded=1)


@pytest.mark.parametrize("moved", [{"job_id": "other"}, {"fence": 99}], ids=["job", "fence"])
def test_a_lease_of_another_job_or_attempt_is_not_owned(moved: dict[str, Any]) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    key = control_table.lease_key(job.tenant, job.subject)
    assert refused(world, key, owns_lease(job), **moved)


def test_a_beat_after_the_lease_was_read_is_seen() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    lease = lease_of(world, job)
    key = control_table.lease_key(job.tenant, job.subject)
    assert refused(world, key, expiry_as_read(lease), expires_at=(lease.expires_at or 0) + 1)
    assert expiry_as_read(None) == ()
