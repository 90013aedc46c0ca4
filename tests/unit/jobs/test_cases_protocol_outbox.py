"""Cases of messages that wait to be sent (C34, C36)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.lifecycle.recovery import CLAIM, Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import group_of
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE, ms
from handlers.jobs.words.writes import Put
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, free, new_job, now, prices, run_next
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
