"""Cases of messages that wait to be sent (C34, C36, C78)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.lifecycle.dispatch import (
    CLAIM,
    NOT_SENT,
    replay_dispatch,
    unsent_of_all,
    unsent_of_job,
)
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import OutcomeUnknown, Transient
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import group_of
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, MINUTE, SECOND, ms
from handlers.jobs.words.writes import Put, Update
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, free, new_job, now, prices, run_next
from tests.support.process import Killed, die, nth, process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.messages import Message

SMALL = Lane.SMALL


def pending(world: MemoryWorld, job_id: str, due_at: int) -> None:
    """A dispatch row as a transaction that commits now leaves it."""
    row = Put(
        control_table.dispatch_key(job_id, 1),
        {
            "job_id": job_id,
            "tenant": TENANT,
            "lane": SMALL.value,
            "tries": 0,
            **control_table.due(control_table.DISPATCH, job_id, due_at, world.due_shards),
        },
    )
    world.store.transact("commit", [row])


def sent(world: MemoryWorld) -> list[str]:
    return [stored.body for stored in world.queues[SMALL].snapshot()]


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("late_by", [0, 1, 10 * MINUTE])
def test_c34_a_row_that_appears_behind_one_already_sent_is_sent(shards: int, late_by: int) -> None:
    world = memory_world(due_shards=shards)
    t2 = world.runtime.now()
    pending(world, "second", t2)
    Recovery(world).run()
    pending(world, "first", t2 - late_by)
    Recovery(world).run()
    assert sorted(body.count("second") for body in sent(world)) == [0, 1]
    assert sorted(body.count("first") for body in sent(world)) == [0, 1]
    assert not [key for key in world.store.snapshot() if key.sk.startswith("DISPATCH")]


def test_c34_a_row_that_is_not_due_yet_waits_for_its_time() -> None:
    """The fast path has its chance first."""
    world = memory_world()
    pending(world, "later", world.runtime.now() + MINUTE)
    Recovery(world).run()
    assert sent(world) == []
    world.runtime.sleep(MINUTE)
    Recovery(world).run()
    assert len(sent(world)) == 1


# --- C36 --------------------------------------------------------------------------------------


class Counting(MemoryLaneQueue):
    """Counts sends, and does something at each."""

    def __init__(self, below: MemoryWorld, at: Callable[[int], None]) -> None:
        super().__init__(below.runtime, name="small", visibility=12)
        self.sends = 0
        self._at = at

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        self._at(self.sends + 1)
        refused = super().send(messages)
        self.sends += 1
        return refused


def ten_unsent(at: Callable[[int], None]) -> tuple[MemoryWorld, Counting, list[Job], list[str]]:
    """Ten jobs whose fast path did nothing, all due."""
    world = memory_world()
    queue = Counting(world, at)
    world = replace(world, queues={**world.queues, SMALL: queue})
    ids = fill(world, 10)
    jobs = [new_job(world, [id_], f"s{n}") for n, id_ in enumerate(ids)]
    world.runtime.sleep(ms(world.timing.dispatch_grace))
    return world, queue, jobs, ids


def fails_first(times: int, then: Callable[[int], None]) -> Callable[[int], None]:
    """The fast path's sends fail; later ones do something else first."""
    failed = 0

    def at(number: int) -> None:
        nonlocal failed
        if failed < times:
            failed += 1
            raise Transient("down")
        then(number)

    return at


def run_all(world: MemoryWorld, jobs: Sequence[Job], messages: int) -> None:
    for _ in range(messages):
        run_next(world, SMALL)
    for job in jobs:
        done = now(world, job)
        assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
        assert free(world, job)


def test_c36_a_dispatcher_that_dies_after_three_of_ten_delays_the_rest_by_one_run() -> None:
    def die_at_the_fourth(number: int) -> None:
        if number == 4 and not dead:
            dead.append(True)
            raise Killed

    dead: list[bool] = []
    world, queue, jobs, ids = ten_unsent(fails_first(10, die_at_the_fourth))
    with pytest.raises(Killed):
        Recovery(world).run()
    assert queue.sends == 3
    world.runtime.sleep(CLAIM)
    Recovery(world).run()
    assert queue.sends == 10
    assert len({stored.body for stored in queue.snapshot()}) == 10
    assert group_of(TENANT) == {stored.group for stored in queue.snapshot()}.pop()
    run_all(world, jobs, 10)
    assert prices(world, ids) == {11}


def test_c36_a_dispatcher_that_dies_between_sending_and_noting_it_sends_one_twice() -> None:
    world, queue, jobs, ids = ten_unsent(fails_first(10, lambda _: None))
    here, store = process(world)
    store.before = nth(3, "dispatch_sent", die)
    with pytest.raises(Killed):
        Recovery(here).run()
    assert queue.sends == 3
    world.runtime.sleep(CLAIM)
    Recovery(world).run()
    assert queue.sends == 11
    run_all(world, jobs, 11)
    assert prices(world, ids) == {11}


def test_c36_what_one_dispatcher_has_claimed_another_leaves_alone() -> None:
    """Two runs at once send each message once, as long as both live."""
    world, queue, _, _ = ten_unsent(fails_first(10, lambda _: None))
    here, store = process(world)
    others: list[dict[str, int]] = []
    store.after = nth(1, "claim_dispatch", lambda: others.append(Recovery(world).run()))
    settled = Recovery(here).run()
    assert (settled[control_table.DISPATCH], others[0][control_table.DISPATCH]) == (1, 9)
    assert queue.sends == 10


# --- C78 --------------------------------------------------------------------------------------

TRIES = 12
LOOK = 2 * SECOND


class Refusing(MemoryLaneQueue):
    """Takes no message while it is broken."""

    def __init__(self, below: MemoryWorld, how: Exception | None) -> None:
        super().__init__(below.runtime, name="small", visibility=12)
        self.how = how
        self.broken = True
        self.tried: list[int] = []

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        self.tried.append(self._runtime.now())
        if not self.broken:
            return super().send(messages)
        if self.how is None:
            return frozenset(range(len(messages)))
        raise self.how


def refusing(how: Exception | None) -> tuple[MemoryWorld, Refusing]:
    world = memory_world(limits=Limits(max_dispatch_tries=TRIES))
    queue = Refusing(world, how)
    return replace(world, queues={**world.queues, SMALL: queue}), queue


def recover_for(world: MemoryWorld, time: int) -> None:
    for _ in range(time // LOOK):
        world.runtime.sleep(LOOK)
        Recovery(world).run()


@pytest.mark.parametrize(
    "how", [None, Transient("down"), OutcomeUnknown("no reply"), ZeroDivisionError("a bug")]
)
@pytest.mark.parametrize("lost", [False, True])
def test_c78_a_message_that_cannot_be_sent_is_parked_until_a_replay(
    how: Exception | None,
    lost: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """A new job's, or that of a job whose worker died; however sending it fails."""
    world, queue = refusing(how)
    ids = fill(world, 1)
    queue.broken = not lost
    job = new_job(world, ids)
    if lost:
        [delivery] = queue.receive(1, 0)
        queue.delete(delivery.receipt)
        begin(world, job)
        queue.broken = True
    queue.tried.clear()
    recover_for(world, HOUR)

    by_fast_path = 1 if lost else 0
    assert len(queue.tried) == by_fast_path + TRIES
    waits = [after - before for before, after in zip(queue.tried, queue.tried[1:], strict=False)]
    assert max(waits) <= ms(world.timing.retry_cap) + LOOK
    assert min(waits[-4:]) >= ms(world.timing.retry_cap) // 2
    [row] = unsent_of_job(world, job.id)
    assert [row] == list(unsent_of_all(world))
    assert (row.parked, row.tries, row.lane) == (True, TRIES, SMALL.value)
    assert str(how or "refused") in row.error
    assert world.telemetry.total(Metric.DISPATCHES_PARKED) == 1
    assert world.telemetry.actions().count("dispatch_parked") == 1
    waiting = now(world, job)
    reason = Waiting.WORKER_LOST if lost else Waiting.DEPENDENCY_DOWN
    assert (waiting.waits_for, waiting.message) == (reason, NOT_SENT)

    queue.broken = False
    recover_for(world, MINUTE)
    assert len(queue.tried) == by_fast_path + TRIES
    assert replay_dispatch(world, row)
    assert not replay_dispatch(world, row)
    assert now(world, job).message == ""
    recover_for(world, LOOK)
    assert not list(unsent_of_all(world))
    run_next(world, SMALL)
    assert (now(world, job).state, prices(world, ids)) == (State.SUCCEEDED, {11})
    assert free(world, job)


def test_c78_a_row_that_nobody_can_read_is_parked_and_holds_no_other_up() -> None:
    world, queue = refusing(None)
    queue.broken = False
    pending(world, "good", world.runtime.now())
    pending(world, "bad", world.runtime.now())
    world.store.transact(
        "damage", [Update(control_table.dispatch_key("bad", 1), set={"lane": "lame"})]
    )
    recover_for(world, HOUR)
    assert len(sent(world)) == 1
    [row] = unsent_of_all(world)
    assert (row.job_id, row.parked, row.tries) == ("bad", True, TRIES)
    assert "lame" in row.error


def test_c78_a_job_that_moved_is_not_changed_when_its_old_message_is_parked() -> None:
    world, _ = refusing(None)
    job = new_job(world, fill(world, 1))
    paused = begin(world, job)
    recover_for(world, 30 * SECOND)
    world.store.transact(
        "ended",
        [Update(control_table.job_key(job.id), set={"state": "PAUSED", "fence": paused.fence + 1})],
    )
    recover_for(world, HOUR)
    [row] = unsent_of_job(world, job.id)
    assert row.parked
    assert (now(world, job).message, now(world, job).waits_for) == ("", Waiting.PAUSED)
