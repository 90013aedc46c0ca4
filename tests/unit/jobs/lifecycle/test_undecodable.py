"""Jobs that cannot be read: whose they may still be, when they are buried, and what that frees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.lifecycle.undecodable import UndecodableResult, end_undecodable
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.storage.transaction import execute
from handlers.jobs.transitions.attempt import begin_attempt, renew_lease
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Index, Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, create, fill, new_job, now, receive, run_next, write
from tests.support.process import Killed, die, nth, process
from tests.support.quotas import LIMITS, counts, made, world_of

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item, Key

SMALL: Final = Lane.SMALL
NEWER: Final = {"waiting_reason": "a reason of a newer version"}
NEWER_LABELS: Final = {"labels": "what a newer version makes of them"}


def change(world: MemoryWorld, key: Key, *gone: str, **attributes: Any) -> None:
    world.store.transact("break", [Update(key, set=attributes, remove=gone)])


def raw(world: MemoryWorld, job: Job) -> Item:
    item = world.store.get(control_table.job_key(job.id))
    assert item is not None
    return item


def lease(world: MemoryWorld, job: Job) -> Item:
    return world.store.get(control_table.lease_key(job.tenant, job.subject)) or {}


def running(world: MemoryWorld) -> Job:
    """A job that a newer version runs, and nobody else can read."""
    job = begin(world, new_job(world, fill(world, 1)), "newer")
    change(world, control_table.job_key(job.id), **NEWER)
    return job


def expire(world: MemoryWorld) -> None:
    world.runtime.sleep(ms(SHORT.small.lease_ttl))


def recover(world: MemoryWorld) -> None:
    """A run at a time when even the lease of a worker that died is due."""
    world.runtime.sleep(ms(SHORT.small.visibility))
    Recovery(world).run()


def buried(world: MemoryWorld, job: Job) -> bool:
    item = raw(world, job)
    return (item["state"], item.get("end_reason")) == ("FAILED", "undecodable")


def freed(world: MemoryWorld, job: Job) -> bool:
    slots = world.store.get(control_table.slots_key(TENANT, job.lane)) or {}
    return "job_id" not in lease(world, job) and not slots.get("in_flight")


# --- under a worker that can read it ----------------------------------------------------------


def test_a_job_that_a_newer_version_runs_is_left_to_it() -> None:
    world = memory_world()
    running(world)
    before = world.store.snapshot()
    decision = on_message(world, receive(world, SMALL), Worker("older"))
    assert isinstance(decision, KeepMessage)
    assert decision.seconds == SHORT.small.visibility
    assert world.store.snapshot() == before


def test_it_is_left_for_as_long_as_its_worker_beats() -> None:
    world = memory_world()
    job = running(world)
    for _ in range(30):
        world.runtime.sleep(ms(SHORT.small.heartbeat))
        write(world, renew_lease(world, job))
        Recovery(world).run()
        for delivery in world.queues[SMALL].receive(1, 0):
            assert isinstance(on_message(world, delivery, Worker("older")), KeepMessage)
    assert raw(world, job)["state"] == State.RUNNING
    change(world, control_table.job_key(job.id), "waiting_reason")
    assert now(world, job).fence == job.fence


@pytest.mark.parametrize("by", ["its message", "recovery"])
def test_when_the_lease_has_expired_it_is_buried(by: str) -> None:
    world = memory_world()
    job = running(world)
    expire(world)
    if by == "recovery":
        recover(world)
    else:
        assert isinstance(run_next(world, SMALL), DeleteMessage)
    assert buried(world, job)
    assert freed(world, job)


def test_recovery_leaves_a_lease_that_has_not_expired() -> None:
    world = memory_world()
    job = running(world)
    key = control_table.lease_key(job.tenant, job.subject)
    change(world, key, **{Index.DUE.sk: world.runtime.now()})
    Recovery(world).run()
    assert raw(world, job)["state"] == State.RUNNING
    assert lease(world, job)["job_id"] == job.id


# --- between the look and the burial ----------------------------------------------------------


def test_a_job_that_a_newer_version_resumes_meanwhile_is_not_buried() -> None:
    """The state is the same before and after; the fence is not."""
    world, store = process(memory_world())
    job = running(world)
    expire(world)
    readable = job.model_copy(update={"waiting_reason": None})
    store.before = nth(1, "bury", lambda: begin(world, readable, "next"))
    assert isinstance(run_next(world, SMALL), KeepMessage)
    assert raw(world, job)["state"] == State.RUNNING
    assert (lease(world, job)["job_id"], lease(world, job)["fence"]) == (job.id, job.fence + 1)


def test_a_job_without_a_fence_that_can_be_read_is_not_buried_either() -> None:
    world, store = process(memory_world())
    job = begin(world, new_job(world, fill(world, 1)), "newer")
    key = control_table.job_key(job.id)
    change(world, key, "fence")
    expire(world)
    store.before = nth(1, "bury", lambda: change(world, key, fence=job.fence + 1))
    assert end_undecodable(world, job.id, raw(world, job), "no fence") is UndecodableResult.MOVED
    assert raw(world, job)["state"] == State.RUNNING


def test_a_beat_that_arrives_late_keeps_the_job() -> None:
    world, store = process(memory_world())
    job = running(world)
    expire(world)
    store.before = nth(1, "bury", lambda: write(world, renew_lease(world, job)))
    assert isinstance(run_next(world, SMALL), KeepMessage)
    assert raw(world, job)["state"] == State.RUNNING


def test_a_held_job_that_is_admitted_meanwhile_keeps_the_slot_it_was_given() -> None:
    """State and fence are the same before and after; what the counters hold for it is not."""
    world, store = process(memory_world())
    world = replace(world, limits=world.limits.model_copy(update={"tenant_slots_small": 1}))
    first, waits = (new_job(world, ["a"], subject) for subject in ("first", "waits"))
    as_read = {**raw(world, waits), **NEWER_LABELS}
    store.before = nth(1, "bury", lambda: control.cancel(world, TENANT, first.id))
    assert (
        end_undecodable(world, waits.id, as_read, "of a newer version") is UndecodableResult.MOVED
    )
    assert now(world, waits).has_slot
    slots = store.get(control_table.slots_key(TENANT, SMALL)) or {}
    assert (slots["in_flight"], slots["held"]) == (1, 0)


def test_a_subject_that_a_retry_took_again_meanwhile_is_not_freed() -> None:
    world = memory_world()
    job = running(world)
    expire(world)
    run_next(world, SMALL)
    as_read = raw(world, job)
    change(world, control_table.job_key(job.id), "waiting_reason")
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    assert end_undecodable(world, job.id, as_read, "as it was before") is UndecodableResult.MOVED
    assert lease(world, job)["job_id"] == job.id


def test_a_pausing_job_whose_burial_was_cut_short_holds_no_subject() -> None:
    """Its lease is not due any more, so that recovery would never find it."""
    world, store = process(memory_world())
    job = begin(world, new_job(world, fill(world, 1)))
    change(world, control_table.job_key(job.id), state="PAUSING", retries="many")
    expire(world)
    store.after = nth(2, "bury", die)
    with pytest.raises(Killed):
        end_undecodable(world, job.id, raw(world, job), "broken")
    assert raw(world, job)["state"] == State.CANCELLED
    assert freed(world, job)


def test_a_job_whose_burial_was_cut_short_can_be_retried() -> None:
    world, store = process(memory_world())
    store.before = nth(1, "release", die)
    job = new_job(world, fill(world, 1))
    with pytest.raises(Killed):
        end_undecodable(world, job.id, {**raw(world, job), **NEWER_LABELS}, "of a newer version")
    assert (now(world, job).state, lease(world, job)["job_id"]) == (State.FAILED, job.id)
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    assert lease(world, job)["fence"] == now(world, job).fence > job.fence


def test_a_job_whose_burial_was_cut_short_while_it_was_paused_is_paused() -> None:
    world, store = process(memory_world())
    store.before = nth(2, "bury", die)
    job = begin(world, new_job(world, fill(world, 1)), "newer")
    control.pause(world, TENANT, job.id)
    expire(world)
    with pytest.raises(Killed):
        end_undecodable(world, job.id, {**raw(world, job), **NEWER_LABELS}, "of a newer version")
    assert now(world, job).state is State.PAUSED
    assert lease(world, job)["job_id"] == job.id
    assert not {"expires_at", Index.DUE.pk, Index.DUE.sk} & set(lease(world, job))


# --- leases that cannot be read, and none -----------------------------------------------------


def test_a_lease_whose_expiry_cannot_be_read_counts_until_recovery_would_look() -> None:
    world = memory_world()
    job = running(world)
    change(world, control_table.lease_key(job.tenant, job.subject), expires_at="soon")
    delivery = receive(world, SMALL)
    assert isinstance(on_message(world, delivery, Worker("older")), KeepMessage)
    world.runtime.sleep(ms(SHORT.small.lease_ttl + SHORT.small.visibility))
    assert isinstance(on_message(world, delivery, Worker("older")), DeleteMessage)
    assert buried(world, job)
    assert freed(world, job)


@pytest.mark.parametrize("by", ["its message", "recovery"])
@pytest.mark.parametrize("broken", ["fence", "expires_at"])
def test_a_job_whose_lease_cannot_be_read_lets_go_of_its_subject(by: str, broken: str) -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)), "newer")
    change(world, control_table.lease_key(job.tenant, job.subject), **{broken: "broken"})
    world.runtime.sleep(ms(SHORT.small.lease_ttl + SHORT.small.visibility))
    if by == "recovery":
        Recovery(world).run()
    else:
        assert isinstance(run_next(world, SMALL), DeleteMessage)
    assert buried(world, job)
    assert freed(world, job)
    made = create(world, ["a"])
    assert isinstance(made, Created)
    assert made.job.fence > job.fence
    assert control_table.lease_of(lease(world, job)).fence == made.job.fence


def test_a_lease_without_a_fence_is_freed_with_its_job() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    change(world, control_table.lease_key(job.tenant, job.subject), "fence")
    assert isinstance(run_next(world, SMALL), DeleteMessage)
    assert freed(world, job)
    assert isinstance(create(world, ["a"]), Created)


def test_a_lease_of_another_job_is_left_alone() -> None:
    world = memory_world()
    job = running(world)
    key = control_table.lease_key(job.tenant, job.subject)
    change(world, key, job_id="another")
    before = lease(world, job)
    assert isinstance(run_next(world, SMALL), DeleteMessage)
    assert buried(world, job)
    assert lease(world, job) == before


def test_recovery_frees_the_subject_of_a_job_that_no_longer_says_which_one() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    change(world, control_table.job_key(job.id), "subject")
    assert isinstance(run_next(world, SMALL), DeleteMessage)
    assert buried(world, job)
    world.runtime.sleep(ms(SHORT.lost_after))
    Recovery(world).run()
    assert freed(world, job)


def test_an_orphaned_lease_that_cannot_be_read_is_freed() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    key = control_table.lease_key(job.tenant, job.subject)
    change(world, key, fence="broken", job_id="nobody")
    world.runtime.sleep(ms(SHORT.lost_after))
    Recovery(world).run()
    assert "job_id" not in lease(world, job)
    assert isinstance(create(world, ["a"]), Created)


@pytest.mark.parametrize("state", ["QUEUED", "held", "PAUSED", "RUNNING", "SUCCEEDED", "garbage"])
def test_burying_an_unreadable_job_gives_back_what_it_counted(state: str) -> None:
    world = world_of(LIMITS.model_copy(update={"tenant_slots_small": 1}))
    kept = made(world, "kept") if state == "held" else None
    job = made(world, "s0")
    if state == "PAUSED":
        control.pause(world, TENANT, job.id)
    if state == "SUCCEEDED":
        run_next(world)
    change: dict[str, object] = {"created_at": "broken"}
    if state in {"garbage", "RUNNING"}:
        change["state"] = state
    world.store.transact("break", [Update(control_table.job_key(job.id), set=change)])  # type: ignore[arg-type]  # on purpose
    item = world.store.get(control_table.job_key(job.id))
    assert item is not None
    for _ in range(2):
        end_undecodable(world, job.id, item, "broken")
    assert counts(world) == ((1, 0, 1) if kept else (0, 0, 0))


def test_a_job_that_somebody_could_read_meanwhile_keeps_its_subject() -> None:
    world = world_of()
    job = made(world, "s")
    as_read = world.store.get(control_table.job_key(job.id))
    assert as_read is not None
    begun = begin_attempt(world, job, worker="newer", receipt="r", expired=None).transaction
    execute(world, begun)
    assert (
        end_undecodable(world, job.id, as_read, "written by a newer version")
        is UndecodableResult.HELD
    )
    assert now(world, job).state is State.RUNNING
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.job_id == job.id
