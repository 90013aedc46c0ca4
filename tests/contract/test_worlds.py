"""Both worlds are whole: every port of one works with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.words.errors import Refused
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.writes import Key, Missing, Put, Table
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import memory_world
from tests.support import aws
from tests.support.world import moto_world

from .conftest import BOTH, Stores

if TYPE_CHECKING:
    from handlers.jobs.words.ports import World


@pytest.fixture(params=BOTH)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "memory":
        yield memory_world(operations={})
        return
    with moto_world(operations={}) as made:
        yield made


def test_records_and_the_control_table_change_together(world: World) -> None:
    key = Key("acme", "007", Table.RECORDS)
    world.store.transact("load", [Put(key, {"price": 1})])
    record = world.records.read("acme", ["007"])["007"]
    checkpoint = Put(Key("JOB#1", "JOB"), {"position": 1}, when=(Missing("pk"),))
    change = world.records.change(record, {"price": 2}, "1")
    world.store.transact("chunk", [checkpoint, change])
    assert world.records.read("acme", ["007"])["007"].fields == {"price": 2}
    with pytest.raises(Refused) as refused:
        world.store.transact("chunk", [checkpoint, change])
    assert all(refused.value.reasons)


def test_each_lane_has_a_queue_of_its_own(world: World) -> None:
    for lane in Lane:
        world.queues[lane].send([Message("j1", lane, "group")])
    for lane in Lane:
        bodies = [delivery.body for delivery in world.queues[lane].receive(10, 0)]
        assert bodies == [Message("j1", lane, "group").body]


def test_a_message_received_too_often_leaves_the_lane(world: World) -> None:
    queue = world.queues[Lane.SMALL]
    queue.send([Message("j1", Lane.SMALL, "group")])
    for _ in range(world.timing.small.max_receive_count):
        (delivery,) = queue.receive(1, 0)
        queue.set_visibility(delivery.receipt, 0)
    assert not queue.receive(1, 0)


# --- a team's own names -----------------------------------------------------------------------

THEIRS: Final = RecordSchema(tenant="shop", id="sku", version="rev", last_job_id="changed_by")


@pytest.fixture(params=BOTH)
def theirs(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        store = MemoryStore(THEIRS)
        yield Stores(store, MemoryRecordStore(store, THEIRS))
        return
    with aws.moto(THEIRS) as made:
        records = aws.record_store(made, schema=THEIRS)
        yield Stores(aws.job_store(made, THEIRS), records)


@pytest.mark.parametrize("before", [{}, {"rev": 4}], ids=["no version", "version"])
def test_keys_version_and_mark_are_named_by_the_team(
    theirs: Stores, before: dict[str, int]
) -> None:
    key = Key("acme", "1", Table.RECORDS)
    theirs.store.transact("load", [Put(key, {"id": "their own", "version": "v2", **before})])
    record = theirs.records.read("acme", ["1"])["1"]
    assert record.fields == {"id": "their own", "version": "v2"}
    theirs.store.transact("change", [theirs.records.change(record, {"id": "new"}, "J1")])
    assert theirs.store.get(key) == {
        "id": "new",
        "version": "v2",
        "rev": record.version + 1,
        "changed_by": "J1",
    }
    with pytest.raises(Refused):
        theirs.store.transact("again", [theirs.records.remove(record, "J1")])
