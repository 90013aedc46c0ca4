"""Every way a job gives its tenant's slot back, and that the next held job has it in that moment:
no run of recovery comes between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control, submit
from handlers.jobs.lifecycle.admission import admit_held, admit_if_free
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Delete, Found, Page, Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, run_next
from tests.support.process import lose, nth, process
from tests.support.quotas import ask, made, world_of

ONE: Final = Limits(tenant_slots_small=1, tenant_slots_bulk=1, small_max_items=10, chunk_size=10)
LOST: Final = ms(SHORT.bulk.lease_ttl + SHORT.bulk.visibility)
"""After it recovery finds a dead worker's lease."""
Way = Callable[[MemoryWorld, Job], None]


def change(world: MemoryWorld, job: Job, **attributes: object) -> None:
    update = Update(control_table.job_key(job.id), set=attributes)  # type: ignore[arg-type]  # values of items
    world.store.transact("break", [update])


def until_left(world: MemoryWorld, job: Job) -> None:
    """A run of recovery that stops when it has dealt with the job: before it looks at who is
    held."""

    def dealt_with() -> bool:
        item = world.store.get(control_table.job_key(job.id)) or {}
        return item["state"] in {"PAUSED", "CANCELLED", "FAILED"}

    Recovery(world, dealt_with).run()
    assert dealt_with()


def beside(world: MemoryWorld, lane: Lane, act_: Callable[[], object]) -> None:
    """Serve the job's message; ``act_`` happens before its first chunk is committed."""
    here, store = process(world)
    store.before = nth(1, "commit_chunk", act_)
    [delivery] = world.queues[lane].receive(1, 0)
    apply_decision(world.queues[lane], delivery, on_message(here, delivery, Worker("w")))


# --- the ways ---------------------------------------------------------------------------------


def ends(world: MemoryWorld, job: Job) -> None:
    run_next(world, job.lane)


def is_cancelled_while_queued(world: MemoryWorld, job: Job) -> None:
    control.cancel(world, TENANT, job.id)


def is_cancelled_while_it_runs(world: MemoryWorld, job: Job) -> None:
    beside(world, job.lane, lambda: control.cancel(world, TENANT, job.id))


def is_paused_while_queued(world: MemoryWorld, job: Job) -> None:
    control.pause(world, TENANT, job.id)


def is_paused_while_it_runs(world: MemoryWorld, job: Job) -> None:
    beside(world, job.lane, lambda: control.pause(world, TENANT, job.id))


def _asked_when_its_worker_is_dead(
    world: MemoryWorld, job: Job, ask_: Callable[[MemoryWorld, str, str], object]
) -> None:
    begin(world, job)
    ask_(world, TENANT, job.id)
    world.runtime.sleep(LOST)


def is_paused_by_the_message_of_a_dead_worker(world: MemoryWorld, job: Job) -> None:
    _asked_when_its_worker_is_dead(world, job, control.pause)
    run_next(world, job.lane)


def is_paused_by_recovery(world: MemoryWorld, job: Job) -> None:
    _asked_when_its_worker_is_dead(world, job, control.pause)
    until_left(world, job)


def is_cancelled_by_the_message_of_a_dead_worker(world: MemoryWorld, job: Job) -> None:
    _asked_when_its_worker_is_dead(world, job, control.cancel)
    run_next(world, job.lane)


def is_cancelled_by_recovery(world: MemoryWorld, job: Job) -> None:
    _asked_when_its_worker_is_dead(world, job, control.cancel)
    until_left(world, job)


def is_out_of_attempts(world: MemoryWorld, job: Job) -> None:
    begin(world, job)
    change(world, job, attempt=SHORT.bulk.max_attempts)
    world.runtime.sleep(LOST)
    until_left(world, job)


def is_superseded(world: MemoryWorld, job: Job) -> None:
    begin(world, job)
    key = control_table.lease_key(job.tenant, job.subject)
    world.store.transact("supersede", [Update(key, set={"job_id": "another"})])
    run_next(world, job.lane)


def is_buried_by_its_message(world: MemoryWorld, job: Job) -> None:
    change(world, job, params=7)
    run_next(world, job.lane)


def is_buried_by_recovery(world: MemoryWorld, job: Job) -> None:
    change(world, begin(world, job), params=7)
    world.runtime.sleep(LOST)
    until_left(world, job)


def is_buried_while_it_is_being_paused(world: MemoryWorld, job: Job) -> None:
    change(world, job, params=7, state=State.PAUSING.value)
    run_next(world, job.lane)


WAYS: Final[tuple[Way, ...]] = (
    ends,
    is_cancelled_while_queued,
    is_cancelled_while_it_runs,
    is_paused_while_queued,
    is_paused_while_it_runs,
    is_paused_by_the_message_of_a_dead_worker,
    is_paused_by_recovery,
    is_cancelled_by_the_message_of_a_dead_worker,
    is_cancelled_by_recovery,
    is_out_of_attempts,
    is_superseded,
    is_buried_by_its_message,
    is_buried_by_recovery,
    is_buried_while_it_is_being_paused,
)


@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_next_held_job_of_the_lane_has_the_slot_at_once(way: Way, lane: Lane) -> None:
    world = world_of(ONE)
    first = made(world, "first", lane)
    waits, behind = made(world, "waits", lane), made(world, "behind", lane)
    assert waits.held
    way(world, first)
    assert [now(world, job).held for job in (waits, behind)] == [False, True]


def test_a_promoted_job_leaves_its_slot_of_the_small_lane() -> None:
    world = world_of(ONE)
    made(world, "first")
    waits = made(world, "waits")
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    hurried = Worker("w", deadline=world.runtime.now())
    apply_decision(world.queues[Lane.SMALL], delivery, on_message(world, delivery, hurried))
    assert not now(world, waits).held


@pytest.mark.parametrize("full", [False, True])
def test_a_takeover_by_a_job_of_another_lane_leaves_the_dead_ones_slot(*, full: bool) -> None:
    """full: the new job is held itself, for want of a slot in its own lane."""
    world = world_of(ONE)
    dead = begin(world, made(world, "s", Lane.BULK))
    waits = made(world, "waits", Lane.BULK)
    if full:
        made(world, "other")
    world.runtime.sleep(LOST + ms(SHORT.takeover_grace))
    outcome = ask(world, "s")
    assert isinstance(outcome, Created)
    assert outcome.job.held is full
    assert now(world, dead).state is State.FAILED
    assert not now(world, waits).held


def test_a_takeover_by_a_job_of_the_same_lane_takes_the_dead_ones_slot() -> None:
    world = world_of(ONE)
    begin(world, made(world, "s"))
    waits = made(world, "waits")
    world.runtime.sleep(LOST + ms(SHORT.takeover_grace))
    outcome = ask(world, "s")
    assert isinstance(outcome, Created)
    assert not outcome.job.held
    assert now(world, waits).held
    run_next(world)  # the dead one's message
    run_next(world)
    assert not now(world, waits).held


# --- a slot that is freed while a job is being held for it ------------------------------------


def freed_in_between(world: MemoryWorld, action: str) -> MemoryWorld:
    """The job in flight ends between the two tries of a write: with a slot, and held."""
    here, store = process(world)
    store.before = nth(2, action, lambda: run_next(world))
    return here


def test_a_job_that_is_held_while_the_slot_becomes_free_is_admitted() -> None:
    world = world_of(ONE)
    made(world, "first")
    late = made(freed_in_between(world, "create"), "late")
    assert not now(world, late).held
    run_next(world)
    assert now(world, late).state is State.SUCCEEDED


def test_who_was_held_before_it_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(ONE)
    made(world, "first")
    with monkeypatch.context() as dies:
        dies.setattr(submit, "admit_if_free", lambda *_: None)
        before = made(freed_in_between(world, "create"), "before")
    assert now(world, before).held
    late = made(world, "late")
    assert [now(world, job).held for job in (before, late)] == [False, True]


def test_a_resumed_job_that_is_held_while_the_slot_becomes_free_is_admitted() -> None:
    world = world_of(ONE)
    paused = made(world, "paused")
    control.pause(world, TENANT, paused.id)
    run_next(world)  # its message has nothing to do any more
    made(world, "first")
    control.resume(freed_in_between(world, "requeue"), TENANT, paused.id)
    assert not now(world, paused).held


@pytest.mark.parametrize("by", ["whoever was held", "whoever freed the slot"])
def test_an_admission_whose_reply_is_lost_and_whose_job_cannot_be_read_is_nobodys_error(
    by: str,
) -> None:
    """A newer version has begun it meanwhile."""

    def begun_by_a_newer_version() -> None:
        newest = max((key for key in world.store.snapshot() if key.sk == "JOB"), key=lambda k: k.pk)
        spoil = Update(newest, set={"labels": "what a newer version makes of them"})
        world.store.transact("begun", [spoil])
        lose()

    world = world_of(ONE)
    first = made(world, "first")
    own = by == "whoever was held"
    here, store = process(world)
    if own:
        store.before = nth(2, "create", lambda: run_next(world))
    store.after = nth(1, "admit", begun_by_a_newer_version)
    if own:
        assert isinstance(ask(here, "late"), Created)
    else:
        made(world, "waits")
        ended = control.cancel(here, TENANT, first.id)
        assert isinstance(ended, Job)
        assert ended.state is State.CANCELLED
    assert "admission_left" in world.telemetry.actions()


def test_jobs_over_the_tenants_limit_are_held_and_admitted_in_order() -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    ids = fill(world, 3)
    jobs = [new_job(world, ids, subject=f"s{n}") for n in range(3)]
    assert [job.held for job in jobs] == [False, True, True]
    for job in jobs:
        run_next(world, Lane.SMALL)
        assert now(world, job).state is State.SUCCEEDED
    assert world.store.get(control_table.slots_key(TENANT, Lane.SMALL)) is not None


# --- an index that lags -----------------------------------------------------------------------


def listed(world: MemoryWorld, monkeypatch: pytest.MonkeyPatch, *jobs: Job) -> None:
    """The index lists these as held, and no others."""
    found = tuple(Found(control_table.job_key(job.id), {"id": job.id}) for job in jobs)
    monkeypatch.setattr(world.store, "query", lambda *_, **__: Page(found))


def test_a_job_that_is_held_no_longer_or_gone_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, store = process(world_of(ONE))
    first, held = made(world, "first"), made(world, "held")
    gone = held.model_copy(update={"id": "gone"})
    listed(world, monkeypatch, first, gone)
    assert admit_held(world, TENANT, Lane.SMALL) == 0
    world.store.transact("free", [Delete(control_table.slots_key(TENANT, Lane.SMALL))])
    listed(world, monkeypatch, first, gone, held)
    assert admit_held(world, TENANT, Lane.SMALL) == 1
    assert store.times("admit") == 1


def test_a_job_that_was_just_held_needs_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(ONE)
    first, held = made(world, "first"), made(world, "held")
    with monkeypatch.context() as lags:
        listed(world, lags)
        control.cancel(world, TENANT, first.id)
        assert now(world, held).held
        admit_if_free(world, held)
    assert not now(world, held).held


def test_no_slot_is_asked_for_while_none_is_free() -> None:
    world, store = process(world_of(ONE))
    asked: list[str] = []
    store.before = asked.append
    made(world, "first")
    assert now(world, made(world, "held")).held
    assert "admit" not in asked
