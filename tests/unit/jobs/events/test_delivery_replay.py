"""Parked events are found, and told again when somebody asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handlers.jobs.events.delivery import replay_event, undelivered_of_all, undelivered_of_job
from handlers.jobs.events.rows import row_key
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, NotTaken
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.writes import Delete
from tests.support.listeners import HOOK, Ear, new_job, recover, rows, world_of

if TYPE_CHECKING:
    from handlers.testing.world import MemoryWorld


def parked(count: int = 1, ear: Ear | None = None) -> tuple[MemoryWorld, Ear]:
    """A world in which nobody took that jobs were created."""
    bus = ear or Ear(fails=NotTaken("answered 410"))
    world = world_of(bus=bus)
    for n in range(count):
        new_job(world, f"s{n}")
    recover(world)
    return world, bus


def test_what_was_given_up_is_listed_with_the_reason() -> None:
    world, _ = parked(5)
    job = new_job(world, "another", notify={"url": HOOK})
    everybody = list(undelivered_of_all(world))
    assert sum(untold.parked for untold in everybody) == 5
    assert {(u.error, u.event.listener) for u in everybody if u.parked} == {
        ("answered 410", EVENT_BUS)
    }
    assert all(0 < untold.since <= world.runtime.now() for untold in everybody if untold.parked)
    mine = list(undelivered_of_job(world, job.id))
    assert [(u.event.listener, u.event.to, u.parked) for u in mine] == [
        (ADDRESS, HOOK, False),
        (EVENT_BUS, None, False),
    ]


def test_a_replay_tells_it_and_leaves_no_row() -> None:
    world, bus = parked(3)
    bus.fails = None
    before = len(bus.heard)
    assert all(replay_event(world, untold.event) for untold in list(undelivered_of_all(world)))
    assert not any(untold.parked for untold in undelivered_of_all(world))
    recover(world, seconds=0)
    assert len(bus.heard) - before == 3
    assert not rows(world)
    assert list(undelivered_of_all(world)) == []


def test_a_replay_that_fails_again_is_parked_again_after_as_many_tries() -> None:
    bus = Ear(fails=Transient("down"))
    world = world_of(Limits(max_effect_tries=3), bus=bus)
    new_job(world)
    for _ in range(6):
        recover(world, seconds=1000)
    asked = bus.asked
    [untold] = undelivered_of_all(world)
    world.runtime.sleep(3_600_000)
    assert replay_event(world, untold.event)
    [row] = rows(world)
    # As long as a new one: what was left of the parked row's time may be over at the next try.
    now = world.runtime.now() // 1000
    assert row["expires_at_seconds"] == now + world.timing.history
    for _ in range(6):
        recover(world, seconds=1000)
    assert bus.asked - asked == 3
    [again] = undelivered_of_all(world)
    assert (again.parked, again.error) == (True, "down")


def test_recovery_leaves_what_is_parked_alone() -> None:
    world, bus = parked()
    asked = bus.asked
    recover(world, seconds=100_000)
    assert bus.asked == asked
    [row] = rows(world)
    assert str(row["due_pk"]).startswith(control_table.PARKED_EVENT)


def test_two_at_once_tell_it_once() -> None:
    world, _ = parked()
    [untold] = undelivered_of_all(world)
    assert [replay_event(world, untold.event) for _ in range(2)] == [True, False]


def test_one_whose_history_is_over_meanwhile_does_not_come_back() -> None:
    world, _ = parked()
    [untold] = undelivered_of_all(world)
    world.store.transact("expired", [Delete(row_key(untold.event))])
    assert not replay_event(world, untold.event)
    assert not rows(world)
