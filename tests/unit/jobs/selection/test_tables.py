"""A job keeps the lookup tables that it was created with, and a process reads each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from handlers.jobs.lifecycle.control import NotPossible
from handlers.jobs.lifecycle.retry_failed import retry_failed
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.selection.tables import read_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.errors import JobFailed
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.table import TableCache
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, run_next
from tests.support.tables import FORM, MANY, PRICED, price_list, upload, wanted


class Counted(MemoryPayloadStore):
    """Counts how often it is read."""

    reads = 0

    def read(self, name: str, offset: int, length: int) -> bytes:
        self.reads += 1
        return super().read(name, offset, length)


class Stored(MemoryPayloadStore):
    """Notes what is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[str] = []

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        self.puts.append(name)
        return super().put(name, blocks)


@pytest.fixture
def world() -> MemoryWorld:
    made = memory_world(operations={"priced": PRICED}, limits=Limits(small_max_items=10))
    return replace(made, payloads=Counted())


def load(world: MemoryWorld, skus: dict[int, str]) -> None:
    """New records."""
    world.records.load(TENANT, {f"r{n}": {"sku": sku, "version": 1} for n, sku in skus.items()})


def created(world: MemoryWorld, upload_id: str, ids: int = 3, subject: str = "s") -> Job:
    load(world, {n: f"sku-{n:05}" if n else "unknown" for n in range(ids)})
    result = submit(world, TENANT, wanted(world, upload_id, ids, subject))
    assert isinstance(result, Created)
    return result.job


def prices(world: MemoryWorld, ids: int) -> list[object]:
    found = world.records.read(TENANT, [f"r{n}" for n in range(ids)])
    return [found[f"r{n}"].fields.get("price") for n in range(ids)]


@pytest.mark.parametrize(("ids", "lane"), [(3, Lane.SMALL), (30, Lane.BULK)])
def test_records_get_what_their_rows_say(world: MemoryWorld, ids: int, lane: Lane) -> None:
    job = created(world, upload(world, price_list()), ids)
    assert job.lane is lane
    run_next(world, lane)
    assert prices(world, ids) == [None, *range(1, ids)]


def test_a_process_reads_a_table_once(world: MemoryWorld) -> None:
    upload_id = upload(world, price_list())
    assert isinstance(world.payloads, Counted)
    for subject in "abc":
        created(world, upload_id, subject=subject)
        run_next(world, Lane.SMALL)
    assert world.payloads.reads == 1
    another = replace(world, tables=TableCache())
    created(another, upload_id, subject="d")
    run_next(another, Lane.SMALL)
    assert world.payloads.reads == 2


def test_another_file_at_the_same_address_changes_nothing(world: MemoryWorld) -> None:
    offer = offer_upload(world, TENANT, FORM)
    world.uploads.send(offer.address, price_list())
    created(world, offer.upload_id)
    world.uploads.send(offer.address, price_list(more=1000))
    run_next(world, Lane.SMALL)
    assert prices(world, 3) == [None, 1, 2]
    created(world, offer.upload_id, subject="later")
    run_next(world, Lane.SMALL)
    assert prices(world, 3) == [None, 1001, 1002]


def test_a_retry_of_the_failed_records_has_the_same_table(world: MemoryWorld) -> None:
    offer = offer_upload(world, TENANT, FORM)
    world.uploads.send(offer.address, price_list())
    job = created(world, offer.upload_id)
    run_next(world, Lane.SMALL)
    world.uploads.send(offer.address, price_list(more=1000))
    ended = read_job(world, job.id)
    assert ended is not None
    assert (ended.state, ended.failed) == (State.SUCCEEDED, 1)
    load(world, {0: "sku-00007"})
    again = retry_failed(world, TENANT, job.id, lambda: False)
    assert isinstance(again, Job)
    assert again.tables == job.tables
    run_next(world, Lane.SMALL)
    assert prices(world, 1) == [7]


def test_a_retry_of_the_failed_records_keeps_the_table_for_its_own_time(world: MemoryWorld) -> None:
    """The bucket's rule counts from when an object was stored."""
    stored = Stored()
    job = created(replace(world, payloads=stored), upload(world, price_list()))
    run_next(replace(world, payloads=stored), Lane.SMALL)
    [name] = (name for name in stored.names() if name.startswith("tables/"))
    assert stored.puts.count(name) == 1
    again = retry_failed(replace(world, payloads=stored), TENANT, job.id, lambda: False)
    assert isinstance(again, Job)
    assert stored.puts.count(name) == 2


def test_no_job_is_made_of_failed_records_whose_table_is_gone(world: MemoryWorld) -> None:
    job = created(world, upload(world, price_list()))
    run_next(world, Lane.SMALL)
    [name] = world.payloads.names()
    world.payloads.delete(name)
    before = world.store.snapshot()
    refused = retry_failed(world, TENANT, job.id, lambda: False)
    assert isinstance(refused, NotPossible)
    assert refused.why == "a stored table of the job is gone"
    assert world.store.snapshot() == before


def test_a_table_that_is_gone_or_changed_ends_the_job(world: MemoryWorld) -> None:
    job = created(world, upload(world, price_list()))
    [name] = world.payloads.names()
    assert len(name.split("/")) == 3
    [upload_id] = job.tables
    assert len(read_table(world, job, upload_id)) == MANY

    world.payloads.put(name, [b"[]"])
    with pytest.raises(JobFailed, match="has changed"):
        read_table(replace(world, tables=TableCache()), job, upload_id)
    world.payloads.delete(name)
    run_next(replace(world, tables=TableCache()), Lane.SMALL)
    ended = read_job(world, job.id)
    assert ended is not None
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.PAYLOAD_GONE)
