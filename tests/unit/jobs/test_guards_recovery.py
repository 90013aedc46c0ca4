"""Conditions of recovery's own writes, of clean-up, and of the end of a job that can't be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.lifecycle.cleanup import clean_up, release_if_held
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.undecodable import end_undecodable
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.finish import Ending, finish_job
from handlers.jobs.transitions.pause import request_stop
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete, Index, Update
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
    not_covered,
    refuse,
)
from tests.support.jobs import TENANT, begin, fill, new_job, write
from tests.support.quotas import LIMITS, made, world_of

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Key
    from handlers.testing.world import MemoryWorld

DUE: Final = Index.DUE.sk
SLOTS: Final = "SLOTS#small"


def ended() -> tuple[MemoryWorld, Job]:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    end = finish_job(world, job, Ending(State.SUCCEEDED))
    write(world, end.transaction)
    return world, end.after


def change(world: MemoryWorld, key: Key, *gone: str, **attributes: Any) -> None:
    world.store.transact("load", [Update(key, set=attributes, remove=gone)])


def recovers(world: MemoryWorld, action: str, later_ms: int) -> Setup:
    world.runtime.sleep(later_ms)
    return Setup(world, action, Recovery(world).run)


# --- clean-up ---------------------------------------------------------------------------------


def cleaned_up() -> Setup:
    world, job = ended()
    marked = job.model_copy(update={"cleanup": True, "payload": "list"})
    return Setup(world, "cleaned_up", lambda: clean_up(world, marked))


def released() -> Setup:
    world, job = ended()
    change(world, control_table.lease_key(TENANT, job.subject), job_id=job.id)
    return Setup(world, "release", lambda: release_if_held(world, job))


# --- recovery ---------------------------------------------------------------------------------


def orphan_freed() -> Setup:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    world.store.transact("load", [Delete(control_table.job_key(job.id))])
    return recovers(world, "free_orphan", 60_000)


def orphan_without_a_fence_freed() -> Setup:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    change(world, control_table.lease_key(TENANT, job.subject), "fence")
    world.store.transact("load", [Delete(control_table.job_key(job.id))])
    return recovers(world, "free_orphan", 60_000)


def with_a_held_job() -> MemoryWorld:
    world = world_of(LIMITS.model_copy(update={"tenant_slots_small": 1}))
    for subject in ("a", "b"):
        made(world, subject)
    return world


def held_looked_at_later() -> Setup:
    return recovers(with_a_held_job(), "look_later", 60_000)


def counters_looked_at_again() -> Setup:
    return recovers(with_a_held_job(), "look_again", 3000)


def counters_left_alone() -> Setup:
    world = with_a_held_job()
    key = control_table.slots_key(TENANT, Lane.SMALL)
    world.store.transact("load", [Update(key, set={"held": 0, "in_flight": 1})])
    return recovers(world, "look_again", 3000)


# --- jobs that can't be read ------------------------------------------------------------------


def ends(world: MemoryWorld, job: Job, action: str, *gone: str, **newer: Any) -> Setup:
    """A job of a newer version ends. gone, newer: what makes its item unreadable."""
    key = control_table.job_key(job.id)
    change(world, key, *gone, **newer)
    item = world.store.get(key)
    assert item is not None
    return Setup(world, action, lambda: end_undecodable(world, job.id, item, "newer"))


def expired(state: State | None = None) -> tuple[MemoryWorld, Job]:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    if state is not None:
        asked = request_stop(world, job, state)
        write(world, asked.transaction)
        job = asked.after
    world.runtime.sleep(60_000)
    return world, job


def running_buried() -> Setup:
    return ends(*expired(), "bury", waiting_reason="newer")


def queued_buried() -> Setup:
    world = memory_world()
    return ends(world, new_job(world, fill(world, 3)), "bury", labels="newer")


def pausing_buried() -> Setup:
    return ends(*expired(State.PAUSING), "bury", waiting_reason="newer")


def buried_without_a_fence() -> Setup:
    return ends(*expired(), "bury", "fence", labels="newer")


def buried_and_released() -> Setup:
    return ends(*expired(), "release", waiting_reason="newer")


SETUPS: Final = by_name(
    cleaned_up,
    released,
    orphan_freed,
    orphan_without_a_fence_freed,
    held_looked_at_later,
    counters_looked_at_again,
    counters_left_alone,
    running_buried,
    queued_buried,
    pausing_buried,
    buried_without_a_fence,
    buried_and_released,
)


def moved(setup: str, **as_read: object) -> list[Case]:
    """A job that can't be read and was moved since. as_read: another value of each attribute."""
    return [refuse(setup, "JOB", **{name: value}) for name, value in as_read.items()]


OTHER: Final[dict[str, object]] = {
    "state": "OTHER",
    "fence": Asked(1),
    "has_slot": "other",
    "waiting_reason": "another",
}
CASES: Final[list[Case]] = [
    refuse("cleaned up", "JOB", state="QUEUED"),
    refuse("cleaned up", "JOB", fence=Asked(1)),
    *lost_lease("released"),
    *lost_lease("orphan freed"),
    refuse("orphan without a fence freed", "LEASE", job_id="another"),
    refuse("orphan without a fence freed", "LEASE", fence=7),
    *lost_lease("held looked at later"),
    refuse("held looked at later", "LEASE", **{DUE: Asked(1)}),
    refuse("counters looked at again", SLOTS, **{DUE: Asked(1)}),
    accept("counters looked at again", SLOTS, held=7),
    refuse("counters left alone", SLOTS, **{DUE: Asked(1)}),
    refuse("counters left alone", SLOTS, held=1),
    accept("counters left alone", SLOTS, held=GONE),
    *moved("running buried", **OTHER),
    *lost_lease("running buried"),
    refuse("running buried", "LEASE", expires_at=Asked(1)),
    *moved("queued buried", **OTHER),
    *lost_lease("queued buried"),
    refuse("queued buried", "LEASE", expires_at=1),
    *moved("pausing buried", **OTHER),
    *lost_lease("pausing buried"),
    refuse("pausing buried", "LEASE", expires_at=Asked(1)),
    *moved("buried without a fence", **{**OTHER, "fence": 7}),
    *lost_lease("buried without a fence"),
    refuse("buried without a fence", "LEASE", expires_at=Asked(1)),
    *moved("buried and released", **OTHER),
    *lost_lease("buried and released"),
    absent("buried and released", "JOB", refused=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_c80_a_write_of_recovery_needs_its_conditions(case: Case) -> None:
    check(SETUPS, case)


def test_c80_each_condition_of_recovery_s_writes_has_a_case() -> None:
    assert not_covered(SETUPS, CASES) == []
