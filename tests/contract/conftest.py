"""Each port twice: in memory, and on AWS as far as moto shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from handlers.memory.job_store import MemoryStore
from handlers.memory.lane_queue import MemoryLaneQueue
from handlers.memory.payload_store import MemoryPayloadStore
from handlers.memory.record_store import MemoryRecordStore
from handlers.memory.runtime import ManualRuntime
from tests.support import aws

if TYPE_CHECKING:
    from handlers.jobs.ports import LaneQueue, PayloadStore, RecordStore, Store

BOTH = ("memory", "moto")


@dataclass(frozen=True)
class Stores:
    """Two tables, and the two ports on them."""

    store: Store
    records: RecordStore


def memory_stores() -> Stores:
    store = MemoryStore()
    return Stores(store, MemoryRecordStore(store))


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        yield memory_stores()
        return
    with aws.moto() as made:
        yield Stores(aws.job_store(made), aws.record_store(made))


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.store


@pytest.fixture(params=BOTH)
def queue(request: pytest.FixtureRequest) -> Iterator[LaneQueue]:
    if request.param == "memory":
        yield MemoryLaneQueue(ManualRuntime())
        return
    with aws.moto() as made:
        yield aws.lane_queue(made)


@pytest.fixture(params=BOTH)
def payloads(request: pytest.FixtureRequest) -> Iterator[PayloadStore]:
    if request.param == "memory":
        yield MemoryPayloadStore()
        return
    with aws.moto() as made:
        yield aws.payload_store(made)
