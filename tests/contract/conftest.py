"""Each port three times: in memory, on AWS as far as moto shows it, and on the local AWS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from handlers.testing.job_store import MemoryStore
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.runtime import ManualRuntime
from scripts.local import ministack
from tests.support import aws

if TYPE_CHECKING:
    from handlers.jobs.words.ports import LaneQueue, PayloadStore, RecordStore, Store

BOTH = ("memory", "moto")
ALL = (*BOTH, "ministack")


@dataclass(frozen=True)
class Stores:
    """Two tables, and the two ports on them."""

    store: Store
    records: RecordStore


def memory_stores() -> Stores:
    store = MemoryStore()
    return Stores(store, MemoryRecordStore(store))


@pytest.fixture(scope="session")
def ministack_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A local AWS, as the local stack starts it."""
    process, port = ministack.start(tmp_path_factory.mktemp("ministack"), lambda *_: None)
    try:
        yield port
    finally:
        ministack.stop(process)


@pytest.fixture(params=ALL)
def made(request: pytest.FixtureRequest) -> Iterator[aws.Clients | None]:
    """Clients of an empty AWS; None where everything is in memory."""
    if request.param == "memory":
        yield None
    elif request.param == "moto":
        with aws.moto() as made:
            yield made
    else:
        with aws.ministack(request.getfixturevalue("ministack_port")) as made:
            yield made


@pytest.fixture
def stores(made: aws.Clients | None) -> Stores:
    return Stores(aws.job_store(made), aws.record_store(made)) if made else memory_stores()


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.store


@pytest.fixture
def queue(made: aws.Clients | None) -> LaneQueue:
    return aws.lane_queue(made) if made else MemoryLaneQueue(ManualRuntime())


@pytest.fixture
def payloads(made: aws.Clients | None) -> PayloadStore:
    return aws.payload_store(made) if made else MemoryPayloadStore()
