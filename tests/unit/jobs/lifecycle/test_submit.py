"""Creating a job when the subject is free, taken, dead, or only seems so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.submit import Busy, Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job, read_lease
from handlers.jobs.storage.transaction import Indeterminate
from handlers.jobs.transitions.attempt import begin_attempt, renew_lease
from handlers.jobs.transitions.chunk_commit import commit_chunk
from handlers.jobs.words.errors import OutcomeUnknown, Refused, Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Key, Put, Update
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, create, fill, new_job, now, receive, run_next

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item, Write

LARGE = [f"{n:060}" for n in range(1000)]


def ask(world: MemoryWorld, ids: Sequence[str], idempotency: str | None, **more: Any) -> Any:
    body = {
        "operation": "adjust_number",
        "subject": "products",
        "params": {"field": "price", "add": 1},
        "ids": ids,
        **more,
    }
    request = accept(parse(json.dumps(body)), world.operations, max_ids=10_000)
    return submit(world, TENANT, request, idempotency=idempotency)


def begun(world: MemoryWorld, job: Job) -> Job:
    """The job as a worker runs it that will never be heard of again."""
    receipt = receive(world, job.lane).receipt
    transition = begin_attempt(world, job, worker="dead", receipt=receipt, expired=None)
    made, after = transition.transaction, transition.after
    world.store.transact(made.action, list(made.writes.values()))
    return after


def slots(world: MemoryWorld, lane: Lane) -> int:
    item = world.store.get(control_table.slots_key(TENANT, lane)) or {}
    return int(str(item.get("in_flight", 0)))


def to_expiry(world: MemoryWorld, job: Job) -> None:
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.expires_at is not None
    world.runtime.sleep(lease.expires_at - world.runtime.now())


# --- take-over --------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "taken"), [(-1, False), (0, False), (1, True)])
def test_a_dead_holder_is_replaced_only_after_the_grace(late: int, *, taken: bool) -> None:
    world = memory_world()
    ids = fill(world, 3)
    dead = begun(world, new_job(world, ids))
    to_expiry(world, dead)
    world.runtime.sleep(ms(world.timing.takeover_grace) + late)
    outcome = create(world, ids)
    if not taken:
        assert outcome == Busy(dead.id, State.RUNNING)
        assert now(world, dead).state is State.RUNNING
        return
    assert isinstance(outcome, Created)
    old = now(world, dead)
    assert (old.state, old.end_reason, old.has_slot) == (State.FAILED, EndReason.TAKEN_OVER, False)
    assert outcome.job.id in old.message
    lease = read_lease(world, outcome.job)
    assert lease is not None
    assert (lease.job_id, lease.fence, lease.expires_at) == (
        outcome.job.id,
        outcome.job.fence,
        None,
    )
    assert outcome.job.fence > dead.fence
    assert slots(world, Lane.SMALL) == 1
    run_next(world, Lane.SMALL)  # the dead one's message: nothing comes of it
    run_next(world, Lane.SMALL)
    assert now(world, outcome.job).state is State.SUCCEEDED
    assert slots(world, Lane.SMALL) == 0


def test_who_was_replaced_can_write_nothing_however_late_it_wakes() -> None:
    world = memory_world()
    ids = fill(world, 3)
    dead = begun(world, new_job(world, ids))
    to_expiry(world, dead)
    world.runtime.sleep(ms(world.timing.takeover_grace) + 1)
    outcome = create(world, ids)
    assert isinstance(outcome, Created)
    record = world.records.read(TENANT, ids[:1])[ids[0]]
    late = commit_chunk(
        world,
        dead,
        dead.model_copy(update={"position": 1, "cursor": 1}),
        records=[world.records.change(record, {"price": 99}, dead.id)],
        outcomes={},
    )
    for transaction in (late, renew_lease(world, dead)):
        with pytest.raises(Refused):
            world.store.transact(transaction.action, list(transaction.writes.values()))
    assert world.records.read(TENANT, ids[:1])[ids[0]].fields["price"] == 10


def test_a_dead_job_that_was_being_cancelled_ends_as_cancelled() -> None:
    world = memory_world()
    ids = fill(world, 3)
    dead = begun(world, new_job(world, ids))
    control.cancel(world, TENANT, dead.id)
    to_expiry(world, dead)
    world.runtime.sleep(ms(world.timing.takeover_grace) + 1)
    assert isinstance(create(world, ids), Created)
    assert (now(world, dead).state, now(world, dead).end_reason) == (State.CANCELLED, None)


@pytest.mark.parametrize("state", [State.QUEUED, State.PAUSED, State.PAUSING])
def test_a_holder_that_waits_is_never_replaced(state: State) -> None:
    world = memory_world()
    ids = fill(world, 3)
    holder = new_job(world, ids)
    if state is State.PAUSING:
        begun(world, holder)
    if state is not State.QUEUED:
        control.pause(world, TENANT, holder.id)
    assert now(world, holder).state is state
    world.runtime.sleep(30 * 86_400_000)
    assert create(world, ids) == Busy(holder.id, state)


def test_a_beat_between_the_look_and_the_take_over_wins() -> None:
    """The holder was only slow; the take-over's condition sees that its lease has moved."""
    world = _with(Interfering())
    store = world.store
    assert isinstance(store, Interfering)
    ids = fill(world, 3)
    slow = begun(world, new_job(world, ids))
    to_expiry(world, slow)
    world.runtime.sleep(ms(world.timing.takeover_grace) + 1)

    def beat() -> None:
        moved = renew_lease(world, slow)
        MemoryStore.transact(store, moved.action, list(moved.writes.values()))

    store.before["take_over"] = beat
    assert create(world, ids) == Busy(slow.id, State.RUNNING)
    assert now(world, slow).state is State.RUNNING
    assert slots(world, Lane.SMALL) == 1


@pytest.mark.parametrize("count", [2, 150], ids=["same lane", "another lane"])
def test_slots_change_hands_with_the_subject(count: int) -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1, tenant_slots_bulk=1))
    ids = fill(world, 150)
    dead = begun(world, new_job(world, ids[:2]))
    to_expiry(world, dead)
    world.runtime.sleep(ms(world.timing.takeover_grace) + 1)
    outcome = create(world, ids[:count])
    assert isinstance(outcome, Created)
    assert not outcome.job.held
    expected = {Lane.SMALL: 0, Lane.BULK: 0, outcome.job.lane: 1}
    assert {lane: slots(world, lane) for lane in Lane} == expected
    while world.queues[outcome.job.lane].snapshot():
        run_next(world, outcome.job.lane)
    assert now(world, outcome.job).state is State.SUCCEEDED
    assert {lane: slots(world, lane) for lane in Lane} == dict.fromkeys(Lane, 0)


# --- holders that are none --------------------------------------------------------------------


def test_a_finished_job_that_still_holds_the_subject_is_no_holder() -> None:
    world = memory_world()
    ids = fill(world, 2)
    done = new_job(world, ids)
    run_next(world, Lane.SMALL)
    left = Update(
        control_table.lease_key(TENANT, "products"),
        set={"job_id": done.id, "expires_at": 1, "fence": now(world, done).fence},
    )
    world.store.transact("left", [left])
    assert isinstance(create(world, ids), Created)


def test_a_holder_nobody_can_find_is_in_the_way_until_recovery_frees_it() -> None:
    world = memory_world()
    lease: Item = {"job_id": "gone", "fence": 7}
    world.store.transact("orphan", [Put(control_table.lease_key(TENANT, "products"), lease)])
    assert create(world, ["a"]) == Busy("gone", None)


@pytest.mark.parametrize("ahead", [-1, 0, 1, 10**9])
def test_the_fence_rises_even_when_it_is_past_our_clock(ahead: int) -> None:
    world = memory_world()
    fence = world.runtime.now() + ahead
    world.store.transact(
        "free", [Put(control_table.lease_key(TENANT, "products"), {"fence": fence})]
    )
    outcome = create(world, ["a"])
    assert isinstance(outcome, Created)
    assert outcome.job.fence > fence
    lease = read_lease(world, outcome.job)
    assert lease is not None
    assert lease.fence == outcome.job.fence == now(world, outcome.job).fence


# --- the same request again -------------------------------------------------------------------


@pytest.mark.parametrize("ended", [False, True])
def test_the_same_request_finds_its_job_while_it_runs_and_afterwards(*, ended: bool) -> None:
    world = memory_world()
    ids = fill(world, 2)
    first = ask(world, ids, "key")
    if ended:
        run_next(world, Lane.SMALL)
    again = ask(world, ids, "key")
    assert (again.job.id, again.replayed, first.replayed) == (first.job.id, True, False)
    assert isinstance(ask(world, ids, "other"), Created if ended else Busy)


def test_a_request_whose_memory_ran_out_makes_a_new_job() -> None:
    world = memory_world()
    first = ask(world, fill(world, 2), "key")
    run_next(world, Lane.SMALL)
    world.runtime.sleep(world.timing.history * 1000)
    second = ask(world, ["r0000"], "key")
    assert (second.replayed, second.job.id == first.job.id) == (False, False)
    assert ask(world, ["r0000"], "key").job.id == second.job.id


def test_a_replay_leaves_no_second_id_list() -> None:
    world = memory_world()
    first = ask(world, LARGE, "key")
    assert ask(world, LARGE, "key").replayed
    assert world.payloads.names() == {first.job.payload}


def test_a_take_over_is_remembered_as_well() -> None:
    world = memory_world()
    ids = fill(world, 2)
    dead = begun(world, new_job(world, ids))
    to_expiry(world, dead)
    world.runtime.sleep(ms(world.timing.takeover_grace) + 1)
    first = ask(world, ids, "key")
    for _ in range(2):  # the dead one's message is first
        run_next(world, Lane.SMALL)
    assert now(world, first.job).state is State.SUCCEEDED
    assert ask(world, ids, "key").job.id == first.job.id


# --- what is left behind ----------------------------------------------------------------------


def test_c13_a_store_that_is_down_leaves_nothing_behind() -> None:
    world = _with(Interfering())
    store = world.store
    assert isinstance(store, Interfering)

    def down() -> None:
        raise Transient("down")

    store.before["create"] = down
    with pytest.raises(Transient) as caught:
        ask(world, LARGE, "key")
    assert not isinstance(caught.value, Indeterminate)
    assert store.snapshot() == {}
    assert world.payloads.names() == frozenset()
    assert not any(queue.snapshot() for queue in world.queues.values())
    del store.before["create"]
    assert isinstance(ask(world, LARGE, "key"), Created)


def test_a_job_that_may_exist_keeps_its_id_list() -> None:
    """The reply is lost, and nobody can say whether the job was made: it was."""
    world = _with(Interfering())
    store = world.store
    assert isinstance(store, Interfering)
    deaf = [False]

    def lose() -> None:
        deaf[0] = True
        raise OutcomeUnknown

    store.after["create"] = lose
    store.reading = lambda: deaf[0]
    with pytest.raises(Indeterminate):
        ask(world, LARGE, None)
    deaf[0] = False
    [job_id] = [str(item["id"]) for key, item in store.snapshot().items() if key.sk == "JOB"]
    job = read_job(world, job_id)
    assert job is not None
    assert world.payloads.names() == {job.payload}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "00123"), ("a", "123")),
        (("a", "x"), ("A", "x")),
        (("a#b", "c"), ("a", "b#c")),
        (("a", "b/c"), ("a", "b%2Fc")),
        (("a", "é"), ("a", "e\u0301")),
        (("a", " 7 "), ("a", "7")),
    ],
)
def test_c55_subjects_that_look_alike_do_not_exclude_each_other(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert control_table.lease_key(*one) != control_table.lease_key(*other)
    world = memory_world()
    for tenant, subject in (one, other):
        body = {
            "operation": "adjust_number",
            "subject": subject,
            "params": {"field": "price", "add": 1},
            "ids": ["007", "07", "7"],
        }
        request = accept(parse(json.dumps(body)), world.operations, max_ids=10)
        assert isinstance(submit(world, tenant, request), Created)
        assert isinstance(submit(world, tenant, request), Busy)


class Interfering(MemoryStore):
    """A store with something that happens before or after a named transaction, or to every read."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self.reading: Callable[[], bool] = lambda: False

    def get(self, key: Key) -> Item | None:
        if self.reading():
            raise Transient("no answer")
        return super().get(key)

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        self.before.get(action, lambda: None)()
        super().transact(action, writes)
        self.after.get(action, lambda: None)()


def _with(store: MemoryStore) -> MemoryWorld:
    return replace(memory_world(), store=store, records=MemoryRecordStore(store))


def test_a_taken_subject_is_refused_and_nothing_is_left() -> None:
    world = memory_world()
    ids = fill(world, 3)
    first = new_job(world, ids)
    before = world.store.snapshot(), len(world.queues[Lane.SMALL].snapshot())
    assert create(world, ids) == Busy(first.id, State.QUEUED)
    assert (world.store.snapshot(), len(world.queues[Lane.SMALL].snapshot())) == before
