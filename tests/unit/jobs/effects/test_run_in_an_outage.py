"""Five minutes of 429 to fifty jobs, in virtual time: nobody else waits, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.effect import Batch, Delivered
from handlers.jobs.words.errors import ReceiptExpired, Transient
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE, SECOND
from handlers.testing.world import MemoryWorld, memory_world
from infra.settings import PRODUCTION_TIMING

if TYPE_CHECKING:
    from handlers.jobs.words.ports import RecordStore, World
    from handlers.jobs.words.writes import Value, Write

HIT: Final = "hit"
OTHER: Final = "other"
OUTAGE: Final = 5 * MINUTE
JOBS: Final = 50
WORKERS: Final = 4
IDS: Final = [f"r{n}" for n in range(5)]


def busy(world: World, until: int, tenant: str, asked: int | None) -> None:
    if tenant == HIT and world.runtime.now() < until:
        raise Transient("429", retry_after_ms=asked)


@dataclass(frozen=True)
class BusyRecords:
    """The record table, throttled for one tenant."""

    records: RecordStore
    refuse: Callable[[str], None]

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        self.refuse(tenant)
        return self.records.read(tenant, ids)

    def change(self, record: Record, fields: Mapping[str, Value], job_id: str) -> Write:
        return self.records.change(record, fields, job_id)

    def remove(self, record: Record, job_id: str) -> Write:
        return self.records.remove(record, job_id)


@dataclass(frozen=True)
class BusySink:
    """A place outside that answers 429 for one tenant, and else keeps versions."""

    refuse: Callable[[str], None]
    versions: dict[tuple[str, str], int] = field(default_factory=dict)

    def deliver(self, batch: Batch) -> Delivered:
        self.refuse(batch.tenant)
        self.versions.update({(batch.tenant, each.id): each.version for each in batch.records})
        return Delivered()


@dataclass
class Shop:
    """Workers and recovery over one world."""

    base: MemoryWorld
    world: World
    until: int
    ended: dict[str, int] = field(default_factory=dict)
    closing: bool = False

    def job(self, job_id: str) -> Job:
        job = read_job(self.base, job_id)
        assert job is not None
        return job

    def submit(self, tenant: str, subject: str) -> str:
        body = json.dumps(
            {
                "operation": "set_fields",
                "subject": subject,
                "ids": [f"{subject}-{id_}" for id_ in IDS],
                "params": {"fields": {"x": 1}},
            }
        )
        created = submit(self.base, tenant, accept(parse(body), self.base.operations, max_ids=99))
        assert isinstance(created, Created)
        return created.job.id

    def work(self) -> None:
        queue = self.base.queues[Lane.SMALL]
        while not self.closing:
            for delivery in queue.receive(1, 1):
                decision = on_message(self.world, delivery, Worker(f"w-{delivery.receipt}"))
                try:
                    apply_decision(queue, delivery, decision)
                except ReceiptExpired:
                    continue

    def recover(self) -> None:
        while not self.closing:
            Recovery(self.world).run()
            self.base.runtime.sleep(MINUTE)

    def run(self, jobs: Sequence[str], limit: int) -> None:
        """Until all jobs have ended; notes when each did."""
        runtime = self.base.runtime
        tasks = [runtime.spawn(f"worker-{n}", self.work) for n in range(WORKERS)]
        tasks.append(runtime.spawn("recovery", self.recover))
        while len(self.ended) < len(jobs):
            assert runtime.now() < limit, "jobs never end"
            runtime.sleep(SECOND)
            for job_id in jobs:
                if job_id not in self.ended and self.job(job_id).state.terminal:
                    self.ended[job_id] = runtime.now()
        self.closing = True
        for task in tasks:
            task.join()


def a_shop(where: str, asked: int | None, **limits: Any) -> tuple[Shop, BusySink]:
    base = memory_world(timing=PRODUCTION_TIMING, limits=Limits(**limits))
    until = base.runtime.now() + OUTAGE
    quiet = BusySink(lambda _: None)
    sink = BusySink(lambda tenant: busy(base, until, tenant, asked)) if where == "sink" else quiet
    world: World = replace(base, sinks={"search_index": sink})
    if where == "records":
        refuse: Callable[[str], None] = lambda tenant: busy(base, until, tenant, asked)  # noqa: E731
        world = _with_records(world, BusyRecords(base.records, refuse))
    return Shop(base, world, until), sink


def _with_records(world: World, records: RecordStore) -> World:
    changed: World = replace(world, records=records)
    return changed


def jobs_of_both(shop: Shop) -> tuple[list[str], list[str]]:
    subjects = [f"s{n}" for n in range(JOBS)]
    for tenant in (HIT, OTHER):
        records = {f"{s}-{id_}": {"x": 0, "version": 1} for s in subjects for id_ in IDS}
        shop.base.records.load(tenant, records)
    hit = [shop.submit(HIT, subject) for subject in subjects]
    return hit, [shop.submit(OTHER, subject) for subject in subjects]


@pytest.mark.parametrize(
    ("where", "asked"),
    [("sink", None), ("sink", 2 * MINUTE), ("records", None), ("records", 2 * MINUTE)],
)
def test_a_busy_dependency_costs_its_own_jobs_time_and_nobody_anything_else(
    where: str, asked: int | None
) -> None:
    shop, sink = a_shop(where, asked)
    hit, other = jobs_of_both(shop)

    shop.run([*hit, *other], shop.until + 60 * MINUTE)

    assert {shop.job(job_id).state for job_id in [*hit, *other]} == {State.SUCCEEDED}
    assert all(shop.ended[job_id] < shop.until for job_id in other)
    assert all(shop.ended[job_id] >= shop.until for job_id in hit)
    assert all(not queue.snapshot() for queue in shop.base.dead_letters.values())
    assert len(sink.versions) == 2 * JOBS * len(IDS)
    assert set(sink.versions.values()) == {2}
    if where == "sink":
        # Their records and subjects were done with as if nothing had happened.
        assert all(
            (shop.job(job_id).attempt, shop.job(job_id).succeeded) == (1, 5) for job_id in hit
        )


def test_records_that_stay_unreadable_fail_their_jobs_which_can_be_retried() -> None:
    """An outage that outlasts what a job waits for without progress."""
    shop, _ = a_shop("records", None, max_retries=0)
    hit, other = jobs_of_both(shop)

    shop.run([*hit, *other], shop.until + 60 * MINUTE)

    assert {shop.job(job_id).state for job_id in other} == {State.SUCCEEDED}
    assert {shop.job(job_id).end_reason for job_id in hit} == {EndReason.ATTEMPTS_EXHAUSTED}
    assert all(not queue.snapshot() for queue in shop.base.dead_letters.values())
    shop.base.runtime.sleep(max(0, shop.until - shop.base.runtime.now()))
    for job_id in hit:
        assert isinstance(control.retry(shop.base, HIT, job_id), Job)
    again = replace(shop, ended={}, closing=False)
    again.run(hit, shop.until + 120 * MINUTE)
    assert {shop.job(job_id).state for job_id in hit} == {State.SUCCEEDED}
