"""Bulk jobs within the rate limits that an operator set while they run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.rate_limiter import RateLimiter, units_of
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.rates import set_lane_limit, set_tenant_limit
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Change, Plan, Record
from handlers.jobs.words.rates import Unit
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Key, Table, Update
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import memory_world
from handlers.web.views import job_view
from tests.support.jobs import TENANT, fill, new_job, now, prices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Write
    from handlers.testing.world import MemoryWorld

CHUNK: Final = 40
RATE: Final = 100


class Counting(MemoryStore):
    """A store that knows when each record was written, and takes a moment for each chunk."""

    def __init__(self, world: MemoryWorld) -> None:
        super().__init__()
        self.runtime = world.runtime
        self.written: list[tuple[int, int]] = []
        self.grants = 0
        self.takes = 10
        """ms of a chunk."""

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        self.grants += action == "take_grant"
        if action == "commit_chunk":
            self.runtime.sleep(self.takes)
            records = sum(write.key.table is Table.RECORDS for write in writes)
            self.written.append((self.runtime.now(), records))
        super().transact(action, writes)


@dataclass
class Lanes:
    """Bulk workers with a job each, all of one tenant."""

    workers: int
    records: int
    jobs: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        limits = Limits(chunk_size=CHUNK, small_max_items=1, tenant_slots_bulk=9)
        made = memory_world(limits=limits)
        self.store = Counting(made)
        self.world: MemoryWorld = replace(
            made, store=self.store, records=MemoryRecordStore(self.store)
        )
        self.ids = fill(self.world, self.records * self.workers)

    def run(self) -> float:
        """Seconds until all have ended."""
        world, count = self.world, self.records
        for number in range(self.workers):
            ids = self.ids[number * count : (number + 1) * count]
            self.jobs.append(new_job(world, ids, f"s{number}"))
        start = world.runtime.now()
        tasks = [world.runtime.spawn(f"w{n}", self._serve) for n in range(self.workers)]
        for task in tasks:
            task.join()
        assert {now(world, job).state for job in self.jobs} == {State.SUCCEEDED}
        assert prices(world, self.ids) == {11}
        return (world.runtime.now() - start) / 1000

    def _serve(self) -> None:
        [delivery] = self.world.queues[Lane.BULK].receive(1, 0)
        worker = Worker("w", limiter=RateLimiter(self.world.runtime))
        decision = on_message(self.world, delivery, worker)
        apply_decision(self.world.queues[Lane.BULK], delivery, decision)

    @property
    def rate(self) -> float:
        """Records a second between the first and the last commit."""
        first, last = self.store.written[0][0], self.store.written[-1][0]
        return sum(n for _, n in self.store.written[1:]) * 1000 / (last - first)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_share_a_limit_within_a_tenth(workers: int) -> None:
    lanes = Lanes(workers, records=3000 // workers)
    set_tenant_limit(lanes.world, TENANT, Unit.RECORDS, RATE)
    lanes.run()
    assert 0.9 * RATE <= lanes.rate <= 1.1 * RATE


def test_without_a_limit_they_go_as_fast_as_they_can() -> None:
    lanes = Lanes(3, records=400)
    lanes.run()
    assert lanes.rate > 20 * RATE


def test_a_limit_costs_a_write_a_second_however_high_it_is() -> None:
    lanes = Lanes(3, records=800)
    set_tenant_limit(lanes.world, TENANT, Unit.RECORDS, 500)
    seconds = lanes.run()
    assert lanes.store.grants <= 2 * seconds + 6


def test_the_tightest_limit_holds() -> None:
    lanes = Lanes(2, records=1500)
    set_tenant_limit(lanes.world, TENANT, Unit.RECORDS, 10 * RATE)
    set_lane_limit(lanes.world, Unit.RECORDS, 20 * RATE, None)
    set_lane_limit(lanes.world, Unit.RECORDS, RATE, "adjust_number")
    lanes.run()
    assert 0.9 * RATE <= lanes.rate <= 1.1 * RATE


def test_write_units_are_a_limit_of_their_own() -> None:
    lanes = Lanes(2, records=1500)
    set_tenant_limit(lanes.world, TENANT, Unit.WRITE_UNITS, 2 * RATE)
    lanes.run()
    assert 0.9 * RATE <= lanes.rate <= 1.1 * RATE


def test_a_rate_below_a_chunk_makes_smaller_chunks() -> None:
    lanes = Lanes(1, records=100)
    set_tenant_limit(lanes.world, TENANT, Unit.RECORDS, 10)
    lanes.run()
    assert {count for _, count in lanes.store.written} == {10}


def test_a_limit_that_is_set_while_a_job_runs_holds_within_seconds() -> None:
    lanes = Lanes(1, records=4000)
    lanes.store.takes = 150
    world = lanes.world

    def operator() -> None:
        world.runtime.sleep(500)
        set_tenant_limit(world, TENANT, Unit.RECORDS, RATE)
        world.runtime.sleep(20_000)
        seen = job_view(now(world, lanes.jobs[0]), 0)
        assert seen["pace"] == {"why": "rate_limit"}
        assert seen["waiting"]["reason"] == "rate_limit"
        assert now(world, lanes.jobs[0]).waiting_since in range(start + 500, start + 15_000)
        set_tenant_limit(world, TENANT, Unit.RECORDS, None)

    task = world.runtime.spawn("operator", operator)
    start = world.runtime.now()
    lanes.run()
    task.join()
    limited = [n for at, n in lanes.store.written if 8_000 <= at - start < 18_000]
    assert 0.8 * RATE <= sum(limited) / 10 <= 1.2 * RATE
    ended = job_view(now(world, lanes.jobs[0]), 0)
    assert {"pace", "waiting", "waiting_reason"}.isdisjoint(ended)


def test_a_worker_that_is_asked_to_stop_does_not_wait_for_its_grant() -> None:
    lanes = Lanes(1, records=500)
    world = lanes.world
    set_tenant_limit(world, TENANT, Unit.RECORDS, 1)
    job = new_job(world, lanes.ids)
    [delivery] = world.queues[Lane.BULK].receive(1, 0)
    asked_at = world.runtime.now() + 5000
    worker = Worker(
        "w",
        stopping=lambda: world.runtime.now() >= asked_at,
        limiter=RateLimiter(world.runtime),
    )
    on_message(world, delivery, worker)
    assert world.runtime.now() - asked_at < 500
    left = now(world, job)
    assert (left.state, left.attempt) == (State.QUEUED, 0)


@pytest.mark.parametrize(("size", "units"), [(10, 2), (900, 2), (1000, 4), (5000, 10)])
def test_units_are_two_for_each_kb_of_the_record(size: int, units: int) -> None:
    record = Record(TENANT, "r", 1, {"text": "x" * size})
    write = Update(Key(TENANT, "r", Table.RECORDS))
    assert units_of(Plan("r", Change({}), write, 2, record)) == units
    assert units_of(Plan("r", Change({}))) == 0
