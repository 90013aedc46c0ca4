"""C119: a limit of 0 stops a tenant: nothing of it starts, on whichever way a job could."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.lifecycle import control, stop_tenant
from handlers.jobs.lifecycle.admission import admit_held
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.stop_tenant import Stopped, pause_jobs
from handlers.jobs.lifecycle.submit import Created, TooMany
from handlers.jobs.lifecycle.waiting import wait_now
from handlers.jobs.transitions.quotas import known_tenant, set_most_active, set_slots
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Found, Key, Page
from tests.support.jobs import TENANT, begin, now, run_next
from tests.support.quotas import ask, counts, held, made, world_of

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Cursor
    from handlers.testing.world import MemoryWorld


@pytest.fixture
def world() -> MemoryWorld:
    return world_of()


DEAD_FOR = 3_600_000


def stop_slots(world: MemoryWorld) -> None:
    for lane in Lane:
        set_slots(world, TENANT, lane, 0)


@pytest.mark.parametrize("lane", Lane)
def test_c119_jobs_of_a_tenant_without_slots_are_held_and_say_so(
    world: MemoryWorld, lane: Lane
) -> None:
    stop_slots(world)  # before its first job: its counts are not there yet
    job = made(world, "s0", lane)
    assert now(world, job).held
    wait = wait_now(world, now(world, job))
    assert wait is not None
    assert (wait.reason, wait.ahead) == (Waiting.TENANT_STOPPED, 0)
    world.runtime.sleep(DEAD_FOR)
    Recovery(world).run()
    assert admit_held(world, TENANT, lane) == 0
    assert now(world, job).held
    assert not world.queues[lane].snapshot()
    assert held(world, [made(world, "s0", lane, tenant="other")]) == [False]


def test_c119_jobs_that_have_begun_end_and_nothing_follows_until_the_limit_is_raised(
    world: MemoryWorld,
) -> None:
    jobs = [made(world, f"s{n}") for n in range(3)]
    stop_slots(world)
    for _ in range(2):
        run_next(world)
    assert [now(world, job).state for job in jobs] == [State.SUCCEEDED] * 2 + [State.QUEUED]
    assert held(world, jobs[2:]) == [True]
    set_slots(world, TENANT, Lane.SMALL, None)
    assert admit_held(world, TENANT, Lane.SMALL) == 1
    run_next(world)
    assert now(world, jobs[2]).state is State.SUCCEEDED


def test_c119_a_resumed_job_of_a_stopped_tenant_is_held(world: MemoryWorld) -> None:
    job = made(world, "s0")
    control.pause(world, TENANT, job.id)
    stop_slots(world)
    control.resume(world, TENANT, job.id)
    assert held(world, [job]) == [True]


def test_c119_a_tenant_without_active_jobs_is_refused_and_nothing_is_left(
    world: MemoryWorld,
) -> None:
    set_most_active(world, TENANT, 0)
    before = world.store.snapshot()
    refused = ask(world, "s0")
    assert refused == TooMany(0)
    assert refused.stopped
    assert "an operator has stopped the tenant" in refused.why
    assert world.store.snapshot() == before
    assert isinstance(ask(world, "s0", tenant="other"), Created)


@pytest.mark.parametrize("lane", Lane)
def test_c119_a_stopped_tenant_takes_over_nothing_that_runs(world: MemoryWorld, lane: Lane) -> None:
    begin(world, made(world, "s0"))
    world.runtime.sleep(DEAD_FOR)
    stop_slots(world)
    newer = made(world, "s0", lane)
    assert held(world, [newer]) == [True]
    assert counts(world) == (0, 1, 1)


def test_c119_a_tenant_without_active_jobs_takes_over_none(world: MemoryWorld) -> None:
    dead = begin(world, made(world, "s0"))
    world.runtime.sleep(DEAD_FOR)
    set_most_active(world, TENANT, 0)
    assert ask(world, "s0") == TooMany(0)
    assert now(world, dead).state is State.RUNNING


def test_c119_running_jobs_of_a_stopped_tenant_are_paused_if_asked(world: MemoryWorld) -> None:
    jobs = [made(world, f"s{n}") for n in range(3)]
    running = begin(world, jobs[0])
    other = made(world, "s0", tenant="other")
    bulk = made(world, "b", Lane.BULK)
    set_slots(world, TENANT, Lane.SMALL, 0)
    assert pause_jobs(world, TENANT, {Lane.SMALL}, held=False) == Stopped(
        (jobs[1].id, running.id), ()
    )
    assert [now(world, job).state for job in [*jobs, bulk, other]] == [
        State.PAUSING,
        State.PAUSED,
        State.QUEUED,
        State.QUEUED,
        State.QUEUED,
    ]
    assert held(world, [jobs[2], bulk]) == [True, False]


def test_c119_no_held_job_begins_while_the_others_are_paused(world: MemoryWorld) -> None:
    jobs = [made(world, f"s{n}") for n in range(4)]
    set_most_active(world, TENANT, 0)
    control.cancel(world, TENANT, begin(world, jobs[0]).id)
    stopped = pause_jobs(world, TENANT, set(Lane), held=True)
    assert stopped == Stopped((jobs[3].id, jobs[2].id, jobs[1].id), (jobs[0].id,))
    assert {now(world, job).state for job in jobs[1:]} == {State.PAUSED}


def test_c119_a_tenant_is_known_by_its_first_job_or_limit(world: MemoryWorld) -> None:
    assert not known_tenant(world, TENANT)
    set_slots(world, TENANT, Lane.SMALL, 3)
    assert known_tenant(world, TENANT)
    made(world, "s0", tenant="other")
    assert known_tenant(world, "other")
    assert not known_tenant(world, "othe")


@pytest.mark.parametrize(
    ("states", "found", "read"),
    [
        (["QUEUED", "RUNNING", "QUEUED"], 2, 2),  # as many as are counted
        (["FAILED", "QUEUED", "SETTLING", "PAUSED"], 2, 4),  # only the active ones count
        (["QUEUED"], 1, 1),  # the index lags: it ends all the same
    ],
)
def test_c119_jobs_are_listed_until_the_oldest_active_one(
    world: MemoryWorld,
    monkeypatch: pytest.MonkeyPatch,
    states: list[str],
    found: int,
    read: int,
) -> None:
    for n in range(2):
        made(world, f"s{n}")
    cursors: list[Cursor] = [{"n": n} for n in range(len(states))]
    asked: list[object] = []

    def page(_world: object, _tenant: object, after: Cursor | None) -> Page:
        number = 0 if after is None else cursors.index(after)
        asked.append(number)
        one = Found(Key("JOB#x", "JOB"), {"id": "x", "state": states[number]})
        more = number + 1 < len(states)
        return Page((one,), cursors[number + 1] if more else None)

    monkeypatch.setattr(stop_tenant, "_page", page)
    assert len([*islice(stop_tenant._active(world, TENANT), 10)]) == found
    assert len(asked) == read
