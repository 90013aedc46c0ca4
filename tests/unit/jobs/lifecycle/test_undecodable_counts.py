"""What the end of a job that cannot be read gives back, by what its item says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle import undecodable
from handlers.jobs.lifecycle.undecodable import (
    EXPIRY,
    _counts,
    _HeldLease,
    _UndecodableJob,
    readable_fence,
)
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.quotas import ACTIVE, SLOTS
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Key, Update
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, new_job

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item
    from handlers.testing.world import MemoryWorld

ITEM: Final[Item] = {"tenant": "t", "lane": "small", "has_slot": True}
HELD: Final[Item] = {"has_slot": False, "waiting_reason": "tenant_limit"}
Q, F, D, X = State.QUEUED, State.FAILED, State.PAUSED, State.CANCELLED


@pytest.mark.parametrize(
    ("state", "after", "change", "slots", "active"),
    [
        (Q, F, {}, {"in_flight": -1}, True),
        (Q, F, HELD, {"held": -1}, True),
        (Q, F, {"has_slot": False}, None, True),
        (Q, F, {"has_slot": "yes"}, None, True),
        (State.RUNNING, F, {}, {"in_flight": -1}, True),
        (State.PAUSING, D, {}, {"in_flight": -1}, False),
        (D, X, HELD, None, True),
        (D, X, {}, None, True),
        (State.SETTLING, F, {"has_slot": False}, None, False),
        (None, F, {}, {"in_flight": -1}, True),
        (None, F, {"finished_at": 1, "has_slot": False}, None, False),
        (Q, F, {"lane": "fast"}, None, True),
        (Q, F, {"tenant": 7}, None, False),
    ],
)
def test_an_end_gives_back_what_is_counted_for_the_job(
    state: State | None, after: State, change: Item, slots: Item | None, *, active: bool
) -> None:
    writes = _counts({**ITEM, **change}, state, after)
    write = writes.get(SLOTS)
    assert (write.add if isinstance(write, Update) else None) == slots
    assert (ACTIVE in writes) is active


def test_only_a_fence_that_cannot_be_read_is_set_again() -> None:
    world = memory_world()
    now = world.runtime.now()
    assert readable_fence(world, {"fence": 3}, {"fence": 9}) == {}
    assert readable_fence(world, {"fence": "x"}, {"fence": now + 9}) == {"fence": now + 9}
    assert readable_fence(world, {"fence": "x"}, {"fence": 9}) == {"fence": now}
    assert readable_fence(world, {}, {"fence": "x"}) == {"fence": now}


def undecodable_job(state: str) -> tuple[MemoryWorld, _UndecodableJob]:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    change = Update(control_table.job_key(job.id), set={"state": state, "total": "many"})
    world.store.transact("break", [change])
    item = world.store.get(control_table.job_key(job.id)) or {}
    key = control_table.lease_key(TENANT, job.subject)
    lease = _HeldLease(key, world.store.get(key) or {})
    return world, _UndecodableJob(world, job.id, item, "why", lease)


def test_only_a_pause_takes_the_expiry_from_the_lease() -> None:
    _, job = undecodable_job("RUNNING")
    assert job.lease is not None
    assert set(EXPIRY) <= job.lease.item.keys()
    failed, paused = job._moved_to(F), job._moved_to(D)
    assert failed.lease == job.lease
    assert paused.lease is not None
    assert not set(EXPIRY) & paused.lease.item.keys()
    assert {"job_id", "fence"} <= paused.lease.item.keys()
    without = _UndecodableJob(job.world, job.job_id, job.item, "why", None)
    assert without._moved_to(D).lease is None


def test_a_move_has_taken_effect_when_the_job_is_in_that_state() -> None:
    world, job = undecodable_job("RUNNING")
    assert job._is_now(State.RUNNING)(world)
    assert not job._is_now(F)(world)


@pytest.mark.parametrize(
    ("gone", "admits"), [((), True), (("has_slot",), False), (("lane",), False)]
)
def test_a_slot_that_is_given_back_goes_to_the_next_held_job(
    gone: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, *, admits: bool
) -> None:
    world, job = undecodable_job("RUNNING")
    if gone:
        world.store.transact("gone", [Update(control_table.job_key(job.job_id), remove=gone)])
    item = world.store.get(control_table.job_key(job.job_id)) or {}
    asked: list[object] = []
    monkeypatch.setattr(undecodable, "admit_held", lambda *a: asked.append(a[1:]))
    job = _UndecodableJob(world, job.job_id, item, "why", job.lease)
    assert job._move(State.RUNNING, F)
    assert bool(asked) is admits


def test_a_lease_of_another_kind_of_key_is_no_lease() -> None:
    assert undecodable._lease_key({"tenant": "t", "subject": 3}) is None
    assert undecodable._lease_key({"tenant": None, "subject": "s"}) is None
    assert isinstance(undecodable._lease_key({"tenant": "t", "subject": "s"}), Key)


@pytest.mark.parametrize(
    ("change", "dropped", "is_left"),
    [
        ({"cleanup": True, "payload": "list"}, ["list"], False),
        ({"cleanup": True}, [], False),
        ({"payload": "list"}, [], False),
        ({"cleanup": "yes", "payload": "list"}, [], True),
    ],
)
def test_only_a_list_that_was_to_be_deleted_is_deleted(
    change: Item, dropped: list[str], monkeypatch: pytest.MonkeyPatch, *, is_left: bool
) -> None:
    """A job that failed may be retried, and needs its list."""
    world, job = undecodable_job("FAILED")
    key = control_table.job_key(job.job_id)
    world.store.transact("left", [Update(key, set=change)])
    asked: list[str] = []
    monkeypatch.setattr(world.payloads, "delete", asked.append)
    item = world.store.get(key) or {}
    assert _UndecodableJob(world, job.job_id, item, "why", None)._clean_up()
    assert asked == dropped
    assert bool((world.store.get(key) or {}).get("cleanup")) is is_left


def test_a_job_that_was_retried_meanwhile_is_not_marked_as_cleaned_up() -> None:
    world, job = undecodable_job("FAILED")
    key = control_table.job_key(job.job_id)
    world.store.transact("left", [Update(key, set={"cleanup": True})])
    item = world.store.get(key) or {}
    world.store.transact("retried", [Update(key, set={"state": "QUEUED"})])
    before = world.store.snapshot()
    assert not _UndecodableJob(world, job.job_id, item, "why", None)._clean_up()
    assert world.store.snapshot() == before


def test_a_move_that_is_refused_gives_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world, job = undecodable_job("RUNNING")
    key = control_table.job_key(job.job_id)
    world.store.transact("resumed", [Update(key, add={"fence": 1})])
    asked: list[object] = []
    monkeypatch.setattr(undecodable, "admit_held", lambda *a: asked.append(a))
    assert not job._move(State.RUNNING, F)
    assert asked == []
    assert (world.store.get(key) or {})["state"] == "RUNNING"
