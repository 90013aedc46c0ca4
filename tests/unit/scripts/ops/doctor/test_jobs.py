"""``fairlane doctor`` on the control table and the queues: one test for each thing it finds."""

from __future__ import annotations

import pytest

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.timing import MINUTE
from handlers.jobs.words.writes import Key, Put, Update
from handlers.testing.world import MemoryWorld, memory_world
from scripts.ops.doctor.finding import Finding, Grade
from scripts.ops.doctor.jobs import LATE, PARKED, check_jobs
from tests.support.jobs import TENANT, begin, create, fill, new_job, run_next


def found(world: MemoryWorld, grade: Grade = Grade.WRONG) -> list[Finding]:
    return [each for each in check_jobs(world, world.dead_letters) if each.grade is grade]


def row(world: MemoryWorld, kind: str, at: int, **more: object) -> None:
    """A row of the outbox that is due at this time."""
    due = control_table.due(kind, "j", at, world.due_shards)
    item = {"tenant": TENANT, "lane": "small", **due, **more}
    world.store.transact("put", [Put(Key("JOB#j", f"ROW#{kind}"), item)])  # type: ignore[arg-type]  # texts and numbers


def test_a_world_in_order_is_healthy() -> None:
    world = memory_world()
    for number in range(3):
        new_job(world, fill(world, 1), f"s{number}")
        run_next(world)
    new_job(world, fill(world, 1), "waits")
    assert found(world) == []
    assert len(found(world, Grade.OK)) == 10


def test_dead_letters_are_counted_for_their_lane() -> None:
    world = memory_world()
    new_job(world, fill(world, 1))
    [stored] = world.queues[Lane.SMALL].snapshot()
    world.dead_letters[Lane.SMALL].accept_dead_letter(stored, world.runtime.now())
    [finding] = found(world)
    assert (finding.check, finding.what) == ("dead letters", "the small lane has 1")
    assert "SmallDeadLetters" in finding.do


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (control_table.DISPATCH, "dispatches"),
        (control_table.CLEANUP, "clean-up"),
        (control_table.EFFECT, "effects"),
        (control_table.EVENT, "events"),
    ],
)
def test_a_row_that_recovery_has_not_seen_to_is_late(kind: str, check: str) -> None:
    world = memory_world()
    row(world, kind, world.runtime.now() - LATE)
    assert found(world) == []
    world.runtime.sleep(3 * MINUTE)
    [finding] = found(world)
    assert finding.check == check
    assert "the oldest for 8 minutes" in finding.what


def test_a_job_without_life_is_stuck_until_recovery_has_seen_to_it() -> None:
    world = memory_world()
    begin(world, new_job(world, fill(world, 1)))
    world.runtime.sleep(60 * MINUTE)
    [finding] = found(world)
    assert finding.check == "stuck jobs"
    Recovery(world).run()
    assert found(world) == []


@pytest.mark.parametrize("kind", PARKED)
def test_what_was_given_up_is_wrong_and_names_the_usual_reason(kind: str) -> None:
    world = memory_world()
    row(world, kind, world.runtime.now(), parked=True, last_error="answered 410")
    [finding] = found(world)
    assert finding.check == PARKED[kind][0]
    assert "1 " in finding.what
    assert "answered 410" in finding.what
    assert finding.do.startswith("fairlane ")


def test_jobs_of_a_stopped_tenant_are_a_note() -> None:
    world = memory_world()
    set_slots(world, TENANT, Lane.SMALL, 0)
    create(world, fill(world, 1), "s")
    assert found(world) == []
    [finding] = found(world, Grade.NOTE)
    assert "an operator has set its limit to 0" in finding.what


def test_held_jobs_with_a_free_slot_are_wrong() -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    ids = fill(world, 1)
    for number in range(2):
        create(world, ids, f"s{number}")
    world.runtime.sleep(3 * MINUTE)
    assert found(world) == []
    key = control_table.slots_key(TENANT, Lane.SMALL)
    world.store.transact("free", [Update(key, add={"in_flight": -1})])
    [finding] = found(world)
    assert f"1 jobs of the tenant {TENANT!r} are held" in finding.what
    assert "0 of 1 slots" in finding.what


def test_a_bulk_job_that_waits_too_long_is_wrong() -> None:
    world = memory_world(limits=Limits(small_max_items=1))
    new_job(world, fill(world, 2))
    assert found(world) == []
    world.runtime.sleep(round(world.timing.lost_after * 1000) + MINUTE)
    checks = {finding.check: finding for finding in found(world)}
    assert "waits longest" in checks["the bulk lane's queue"].what
