"""A tenant's limits: held jobs in their order, admission, limits of its own, too many jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.admission import admit_held
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, TooMany, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.transitions.quotas import (
    SLOTS,
    Use,
    exchange_slots,
    place_in_line,
    set_most_active,
    set_slots,
    take_slot,
    uncount_active,
    usage,
)
from handlers.jobs.words.errors import OutcomeUnknown, Transient
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Check
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, now, run_next
from tests.support.quotas import FEW, LIMITS, ask, counts, held, made, world_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.writes import Write


# --- held jobs --------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", Lane)
def test_held_jobs_say_why_and_which_is_next(lane: Lane) -> None:
    world = world_of()
    free = LIMITS.tenant_slots(lane)
    jobs = [made(world, f"s{n}", lane) for n in range(free + 3)]
    assert held(world, jobs) == [False] * free + [True] * 3
    assert [place_in_line(world, job) for job in jobs[free:]] == [1, 2, 3]
    assert {now(world, job).waiting_reason for job in jobs[free:]} == {Waiting.TENANT_LIMIT}
    assert len(world.queues[lane].snapshot()) == free


def test_each_job_that_ends_admits_the_next_in_order() -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(5)]
    for admitted in (3, 4, 5, 5, 5):
        run_next(world)
        assert held(world, jobs) == [False] * admitted + [True] * (5 - admitted)
    assert {now(world, job).state for job in jobs} == {State.SUCCEEDED}
    assert counts(world) == (0, 0, 0)


def test_a_cancelled_held_job_leaves_the_line_and_others_move_up() -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(5)]
    control.cancel(world, TENANT, jobs[2].id)
    assert [place_in_line(world, job) for job in jobs[3:]] == [1, 2]
    assert counts(world) == (2, 2, 4)
    run_next(world)
    assert not now(world, jobs[3]).held


def test_a_paused_held_job_gives_its_place_to_the_next_and_gets_it_again() -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(4)]
    control.pause(world, TENANT, jobs[2].id)
    assert counts(world) == (2, 1, 4)
    control.resume(world, TENANT, jobs[2].id)
    assert [place_in_line(world, job) for job in jobs[2:]] == [1, 2]
    run_next(world)
    assert held(world, jobs) == [False, False, False, True]


def test_lanes_and_tenants_hold_apart() -> None:
    world = world_of()
    for n in range(4):
        made(world, f"s{n}")
    bulk, other = made(world, "b", Lane.BULK), made(world, "s0", tenant="other")
    assert held(world, [bulk, other]) == [False, False]


def test_a_slot_whose_finisher_could_not_admit_is_given_by_recovery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(3)]
    with monkeypatch.context() as patch:
        break_(patch, world, "admit")
        run_next(world)
    assert now(world, jobs[0]).state is State.SUCCEEDED
    assert now(world, jobs[2]).held
    world.runtime.sleep(5000)
    Recovery(world).run()
    assert not now(world, jobs[2]).held
    assert counts(world) == (2, 0, 2)


def test_jobs_that_wait_for_a_slot_do_not_hide_a_lost_message_from_recovery() -> None:
    world = memory_world(
        limits=LIMITS.model_copy(update={"tenant_slots_small": 1, "recovery_slice": 1}),
        due_shards=1,
    )
    waiting = [made(world, f"s{n}") for n in range(3)]
    lost = made(world, "s", tenant="other")
    world.runtime.sleep(61_000)
    for _ in range(4):
        Recovery(world).run()
    assert held(world, waiting) == [False, True, True]
    assert now(world, lost).dispatches == 2


def break_(patch: pytest.MonkeyPatch, world: MemoryWorld, broken: str) -> None:
    """Refuse one kind of transaction."""
    transact = world.store.transact

    def refusing(action: str, writes: Sequence[Write]) -> None:
        if action == broken:
            raise Transient
        transact(action, writes)

    patch.setattr(world.store, "transact", refusing)


def test_admission_whose_reply_is_lost_admits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(4)]
    transact = world.store.transact
    lost: list[str] = []

    def losing(action: str, writes: Sequence[Write]) -> None:
        transact(action, writes)
        if action == "admit" and not lost:
            lost.append(action)
            raise OutcomeUnknown

    monkeypatch.setattr(world.store, "transact", losing)
    run_next(world)
    assert lost
    assert held(world, jobs) == [False, False, False, True]
    assert counts(world) == (2, 1, 3)
    assert len(world.queues[Lane.SMALL].snapshot()) == 2


# --- limits of a tenant's own -----------------------------------------------------------------


def test_a_higher_limit_holds_for_the_next_job_and_for_nobody_else() -> None:
    world = world_of()
    set_slots(world, TENANT, Lane.SMALL, 3)
    assert held(world, [made(world, f"s{n}") for n in range(4)]) == [False] * 3 + [True]
    others = [made(world, f"s{n}", tenant="other") for n in range(3)]
    assert held(world, others) == [False, False, True]


def test_a_lower_limit_lets_jobs_in_flight_run_on() -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(2)]
    set_slots(world, TENANT, Lane.SMALL, 1)
    jobs.append(made(world, "s2"))
    run_next(world)
    assert now(world, jobs[2]).held
    run_next(world)
    assert not now(world, jobs[2]).held
    assert usage(world, TENANT).lanes[Lane.SMALL] == Use(1, 1, own=True)


def test_a_raised_limit_admits_who_is_held() -> None:
    world = world_of()
    jobs = [made(world, f"s{n}") for n in range(16)]
    set_slots(world, TENANT, Lane.SMALL, 15)
    assert admit_held(world, TENANT, Lane.SMALL) == 10
    assert held(world, jobs) == [False] * 12 + [True] * 4
    world.runtime.sleep(5000)
    Recovery(world).run()
    assert held(world, jobs) == [False] * 15 + [True]
    assert counts(world) == (15, 1, 16)


def test_a_limit_that_is_taken_back_is_the_deployments_again() -> None:
    world = world_of()
    set_slots(world, TENANT, Lane.SMALL, 9)
    set_slots(world, TENANT, Lane.SMALL, None)
    assert held(world, [made(world, f"s{n}") for n in range(3)]) == [False, False, True]
    assert not usage(world, TENANT).lanes[Lane.SMALL].own


def test_c119_no_limit_below_zero() -> None:
    world = world_of()
    with pytest.raises(ValueError, match="at least 0"):
        set_slots(world, TENANT, Lane.SMALL, -1)
    with pytest.raises(ValueError, match="at least 0"):
        set_most_active(world, TENANT, -1)


# --- active jobs ------------------------------------------------------------------------------


def test_one_job_too_many_is_refused_and_leaves_nothing() -> None:
    world = world_of(FEW)
    jobs = [made(world, "s0"), made(world, "b", Lane.BULK), made(world, "s1")]
    before = world.store.snapshot()
    assert ask(world, "s2") == TooMany(3)
    assert world.store.snapshot() == before
    assert isinstance(ask(world, "s0", tenant="other"), Created)
    control.cancel(world, TENANT, jobs[1].id)
    assert isinstance(ask(world, "s2"), Created)


def test_a_stored_id_list_of_a_refused_job_is_gone() -> None:
    world = world_of(FEW.model_copy(update={"max_active_jobs_per_tenant": 1}))
    made(world, "s0")
    body = {
        "operation": "adjust_number",
        "subject": "s1",
        "params": {"field": "price", "add": 1},
        "ids": [f"{n:0200}" for n in range(300)],
    }
    request = accept(parse(json.dumps(body)), world.operations, max_ids=1000)
    assert submit(world, TENANT, request) == TooMany(1)
    assert not world.payloads.names()


def test_held_and_paused_jobs_are_active() -> None:
    world = world_of(FEW)
    jobs = [made(world, f"s{n}") for n in range(3)]
    assert now(world, jobs[2]).held
    control.pause(world, TENANT, jobs[0].id)
    assert ask(world, "s3") == TooMany(3)
    control.cancel(world, TENANT, jobs[0].id)
    assert isinstance(ask(world, "s3"), Created)


def test_a_taken_subject_is_named_before_the_limit() -> None:
    world = world_of(FEW)
    jobs = [made(world, f"s{n}") for n in range(3)]
    assert getattr(ask(world, "s0"), "job_id", None) == jobs[0].id


def test_a_limit_of_its_own_for_active_jobs() -> None:
    world = world_of(FEW)
    set_most_active(world, TENANT, 4)
    for n in range(4):
        made(world, f"s{n}")
    assert ask(world, "s4") == TooMany(4)
    set_most_active(world, TENANT, 1)
    assert ask(world, "s4") == TooMany(1)


def test_a_resumed_job_counts_once() -> None:
    world = world_of(FEW)
    job = made(world, "s0")
    control.pause(world, TENANT, job.id)
    assert counts(world) == (0, 0, 1)
    control.resume(world, TENANT, job.id)
    assert counts(world) == (1, 0, 1)


def test_a_takeover_from_a_job_without_a_slot_takes_one() -> None:
    world = world_of()
    old = made(world, "s")
    fresh = old.model_copy(update={"id": "fresh"})
    assert isinstance(exchange_slots(world, fresh, old)[SLOTS], Check)
    without = old.model_copy(update={"has_slot": False})
    assert exchange_slots(world, fresh, without) == take_slot(world, fresh)
    other_lane = fresh.model_copy(update={"lane": Lane.BULK})
    assert exchange_slots(world, other_lane, without) == take_slot(world, other_lane)
    assert "old slots" in exchange_slots(world, other_lane, old)


@pytest.mark.parametrize("state", State)
def test_only_a_job_that_takes_its_subject_counts_as_active(state: State) -> None:
    job = made(world_of(), "s").model_copy(update={"state": state})
    assert bool(uncount_active(job)) is (not state.terminal and state is not State.SETTLING)
