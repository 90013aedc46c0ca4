"""What recovery does with a lease, by the state of its job and by the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete, Found, Index, Update
from handlers.testing.world import memory_world
from tests.support.effect_rows import row_of, with_effect
from tests.support.jobs import TENANT, begin, fill, new_job
from tests.support.process import process

if TYPE_CHECKING:
    from handlers.jobs.words.effect import Effect
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Item, Key, Value
    from handlers.testing.world import MemoryWorld
    from tests.support.process import ProcessStore

DUE: Final = Index.DUE.sk
RUNNING: Final = State.RUNNING
UNSENT: Final = ("unsent",)


def lease_key(job: Job) -> Key:
    return control_table.lease_key(TENANT, job.subject)


def change(world: MemoryWorld, key: Key, **attributes: Value) -> None:
    world.store.transact("change", [Update(key, set=attributes)])


def due_lease(
    state: State, expires_in: int | None = 0, *, unsent: bool = False, **job: Value
) -> tuple[MemoryWorld, ProcessStore, Job, Found]:
    """A job in the state, and its lease, which recovery has found.

    expires_in: ms until the lease expires; None: it does not. unsent: the job's message has a row.
    """
    world, store = process(memory_world())
    made = begin(world, new_job(world, fill(world, 3)))
    change(world, control_table.job_key(made.id), state=state.value, **job)
    key, now = lease_key(made), world.runtime.now()
    if expires_in is None:
        world.store.transact("for ever", [Update(key, remove=("expires_at",))])
    else:
        change(world, key, expires_at=now + expires_in)
    change(world, key, **{DUE: now})
    if unsent:
        change(world, control_table.dispatch_key(made.id, made.dispatches), lane="small")
    store.done.clear()
    return world, store, made, Found(key, world.store.get(key) or {})


def after(world: MemoryWorld, store: ProcessStore, found: Found) -> tuple[bool, list[str]]:
    """Whether recovery has handled the lease, and what it wrote."""
    handled = Recovery(world)._lease(found)
    return handled, [action for _, action in store.done]


@pytest.mark.parametrize(
    ("state", "expires_in", "handled", "wrote"),
    [
        (State.QUEUED, None, True, "dispatch_again"),
        (State.QUEUED, 1, True, "dispatch_again"),
        (RUNNING, 0, True, "dispatch_again"),
        (RUNNING, 1, False, ""),
        (RUNNING, None, False, ""),
        (State.CANCELLING, 0, True, "end_cancelled"),
        (State.CANCELLING, 1, False, ""),
        (State.PAUSING, 0, True, "pause"),
        (State.PAUSING, 1, False, ""),
        (State.SETTLING, 1, True, "release"),
        (State.SUCCEEDED, 1, True, "release"),
        (State.FAILED, None, True, "release"),
    ],
)
def test_the_state_and_the_expiry_decide(
    state: State,
    expires_in: int | None,
    handled: bool,  # noqa: FBT001  a parameter of the test
    wrote: str,
) -> None:
    world, store, _, found = due_lease(state, expires_in)
    did, actions = after(world, store, found)
    assert (did, actions[:1]) == (handled, [wrote] if wrote else [])


@pytest.mark.parametrize(
    ("state", "attempt", "wrote"),
    [
        (State.QUEUED, 1, "look_later"),
        (State.QUEUED, 99, "look_later"),
        (RUNNING, 1, "look_later"),
        (RUNNING, 99, "end_failed"),
        (State.CANCELLING, 1, "end_cancelled"),
        (State.SUCCEEDED, 1, "release"),
    ],
)
def test_a_job_whose_message_could_not_be_sent_is_looked_at_later(
    state: State, attempt: int, wrote: str
) -> None:
    world, store, _, found = due_lease(state, unsent=True, attempt=attempt)
    handled, actions = after(world, store, found)
    assert actions[:1] == [wrote]
    assert handled is (wrote != "look_later")


def test_the_attempts_are_used_up_at_the_last_one() -> None:
    most = memory_world().timing.small.max_attempts
    for attempt, wrote in ((most - 1, "dispatch_again"), (most, "end_failed")):
        world, store, _, found = due_lease(RUNNING, attempt=attempt)
        assert after(world, store, found)[1][:1] == [wrote]


def test_a_lease_that_is_not_due_any_more_is_left_alone() -> None:
    world, store, _, found = due_lease(RUNNING)
    change(world, found.key, **{DUE: world.runtime.now() + 1})
    store.done.clear()
    assert after(world, store, found) == (False, [])


def test_a_lease_without_a_holder_or_that_is_gone_is_left_alone() -> None:
    for gone in (False, True):
        world, store, _, found = due_lease(RUNNING)
        left = Delete(found.key) if gone else Update(found.key, remove=("job_id",))
        world.store.transact("left", [left])
        store.done.clear()
        assert after(world, store, found) == (False, [])


@pytest.mark.parametrize(("expires_in", "handled"), [(0, True), (1, False)])
def test_a_job_that_cannot_be_read_counts_when_it_has_ended(
    expires_in: int, *, handled: bool
) -> None:
    world, store, _, found = due_lease(RUNNING, expires_in, total="many")
    assert after(world, store, found)[0] is handled


@pytest.mark.parametrize("free", [True, False])
def test_a_held_job_counts_when_it_is_admitted(*, free: bool) -> None:
    world, store, job, found = due_lease(State.QUEUED, None, waiting_reason="tenant_limit")
    change(world, control_table.job_key(job.id), has_slot=False, held_pk="x", held_sk=job.id)
    partition = control_table.held_partition(TENANT, job.lane)
    change(world, control_table.job_key(job.id), held_pk=partition)
    slots = control_table.slots_key(TENANT, job.lane)
    change(world, slots, in_flight=0 if free else 1000, held=1, tenant=TENANT, lane="small")
    change(world, slots, **{DUE: world.runtime.now()})
    assert after(world, store, found)[0] is free
    counters = Found(slots, world.store.get(slots) or {})
    assert Recovery(world)._admit(counters) is False


def test_counters_of_a_held_job_count_when_it_is_admitted() -> None:
    world, _, job, _ = due_lease(State.QUEUED, None, waiting_reason="tenant_limit")
    partition = control_table.held_partition(TENANT, job.lane)
    change(world, control_table.job_key(job.id), has_slot=False, held_pk=partition, held_sk=job.id)
    slots = control_table.slots_key(TENANT, job.lane)
    change(world, slots, in_flight=0, held=1, tenant=TENANT, lane="small")
    change(world, slots, **{DUE: world.runtime.now()})
    assert Recovery(world)._admit(Found(slots, world.store.get(slots) or {})) is True


# --- effects and what is left -----------------------------------------------------------------


def recovered(world: MemoryWorld, effect: Effect) -> bool:
    item: Item = row_of(world, effect) or {}
    return Recovery(world)._effect(
        Found(control_table.effect_key(effect.job_id, effect.position), item)
    )


@pytest.mark.parametrize(("tries", "done"), [(-1, True), (0, False)])
def test_an_effect_whose_tries_are_used_up_is_parked_without_another(
    tries: int, *, done: bool
) -> None:
    """No sink is deployed, so that one more try would have done it."""
    most = memory_world().limits.max_effect_tries
    world, effect = with_effect(tries=most + tries)
    assert recovered(world, effect) is done
    assert bool((row_of(world, effect) or {}).get("parked")) is not done
    assert world.telemetry.total(Metric.EFFECTS_DONE) == done


@pytest.mark.parametrize("marked", [True, False])
def test_only_a_job_that_is_still_marked_is_cleaned_up(*, marked: bool) -> None:
    world, store, job, _ = due_lease(State.SUCCEEDED)
    change(world, control_table.job_key(job.id), cleanup=marked)
    store.done.clear()
    found = Found(control_table.job_key(job.id), {"id": job.id})
    assert Recovery(world)._cleanup(found) is marked
    assert [action for _, action in store.done] == ["cleaned_up"] * marked
    stored = read_job(world, job.id)
    assert stored is not None
    assert not stored.cleanup


def test_a_job_that_is_gone_needs_no_clean_up() -> None:
    world = memory_world()
    assert Recovery(world)._cleanup(Found(control_table.job_key("j"), {"id": "j"})) is False


def test_a_run_without_time_handles_nothing() -> None:
    world, _, _, found = due_lease(RUNNING)
    partition = (world.store.get(found.key) or {})[Index.DUE.pk]
    assert partition
    assert set(Recovery(world, out_of_time=lambda: True).run().values()) == {0}
    assert Recovery(world).run()["LEASE".lower()] == 1


@pytest.mark.parametrize(("expires_in", "handled"), [(0, True), (1, False)])
def test_a_clean_up_of_a_job_that_cannot_be_read_counts_when_it_has_ended(
    expires_in: int, *, handled: bool
) -> None:
    world, _, job, _ = due_lease(RUNNING, expires_in, total="many", cleanup=True)
    found = Found(control_table.job_key(job.id), {"id": job.id})
    assert Recovery(world)._cleanup(found) is handled
