"""The team's records: read, and the two writes that change them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.words.errors import Refused, Why
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import UNUSABLE, ReservedField
from handlers.jobs.words.writes import Delete, Key, Put, Table, Update

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item, Value, Write

    from .conftest import Stores

TENANT: Final = "acme"


def put(stores: Stores, record_id: str, item: Item, tenant: str = TENANT) -> None:
    stores.store.transact("setup", [Put(Key(tenant, record_id, Table.RECORDS), item)])


def read(stores: Stores, record_id: str = "1") -> Record:
    return stores.records.read(TENANT, [record_id])[record_id]


def stored(stores: Stores, record_id: str = "1") -> Item | None:
    return stores.store.get(Key(TENANT, record_id, Table.RECORDS))


def refused(stores: Stores, write: Write) -> bool:
    before = stored(stores, write.key.sk)
    try:
        stores.store.transact("change", [write])
    except Refused as refusal:
        (reason,) = refusal.reasons
        if reason is None or reason.why is not Why.CONDITION or reason.item != before:
            raise
        return True
    return False


def test_records_are_read_by_id_and_tenant(stores: Stores) -> None:
    put(stores, "1", {"price": Decimal("1.5"), "version": 3, "last_job_id": "J0"})
    put(stores, "2", {"name": "ä"})
    put(stores, "3", {"name": "other"}, tenant="other")
    assert stores.records.read(TENANT, ["2", "1", "3", "2", "absent", ""]) == {
        "1": Record(TENANT, "1", 3, {"price": Decimal("1.5")}, "J0"),
        "2": Record(TENANT, "2", 0, {"name": "ä"}, None),
    }
    assert stores.records.read(TENANT, []) == {}


def test_ids_are_opaque(stores: Stores) -> None:
    ids = ["007", "07", "7", " 7", "😀", "á", "a\u0301", "שלום", "x" * 256]
    for number, record_id in enumerate(ids):
        put(stores, record_id, {"number": number})
    found = stores.records.read(TENANT, ids)
    assert {record_id: record.fields["number"] for record_id, record in found.items()} == {
        record_id: number for number, record_id in enumerate(ids)
    }
    assert all(found[record_id].id == record_id for record_id in ids)


def test_a_hundred_ids_are_one_read_and_no_more(stores: Stores) -> None:
    ids = [f"{number}" for number in range(100)]
    for record_id in ids:
        put(stores, record_id, {})
    assert set(stores.records.read(TENANT, ids)) == set(ids)
    assert set(stores.records.read(TENANT, [*ids, "5", "6"])) == set(ids)
    with pytest.raises(ValueError, match="101"):
        stores.records.read(TENANT, [*ids, "100"])


def test_a_change_sets_removes_marks_and_counts(stores: Stores) -> None:
    put(stores, "1", {"a": 1, "b": 2, "c": 3, "version": 7, "last_job_id": "J0"})
    write = stores.records.change(read(stores), {"a": Decimal("1.1"), "b": None, "new": "x"}, "J1")
    assert isinstance(write, Update)
    stores.store.transact("change", [write])
    assert stored(stores) == {
        "a": Decimal("1.1"),
        "c": 3,
        "new": "x",
        "version": 8,
        "last_job_id": "J1",
    }
    assert read(stores) == Record(TENANT, "1", 8, {"a": Decimal("1.1"), "c": 3, "new": "x"}, "J1")


@pytest.mark.parametrize("before", [{"a": 1}, {"a": 1, "version": 0}], ids=["none", "zero"])
def test_a_record_without_a_version_gets_its_first(stores: Stores, before: Item) -> None:
    put(stores, "1", before)
    record = read(stores)
    assert record.version == 0
    stores.store.transact("change", [stores.records.change(record, {"a": 2}, "J1")])
    assert stored(stores) == {"a": 2, "version": 1, "last_job_id": "J1"}


@pytest.mark.parametrize("before", [{"a": 1}, {"a": 1, "version": 4}], ids=["none", "four"])
@pytest.mark.parametrize("removing", [False, True], ids=["change", "remove"])
def test_a_job_changes_a_record_once(stores: Stores, before: Item, *, removing: bool) -> None:
    put(stores, "1", before)
    record = read(stores)
    stores.store.transact("change", [stores.records.change(record, {"a": 2}, "J1")])
    after = read(stores)
    again = [
        stores.records.remove(one, "J1") if removing else stores.records.change(one, {"a": 3}, "J1")
        for one in (record, after)
    ]
    assert [refused(stores, write) for write in again] == [True, True]
    assert not refused(stores, stores.records.change(after, {"a": 3}, "J2"))


@pytest.mark.parametrize("before", [{"a": 1}, {"a": 1, "version": 4}], ids=["none", "four"])
def test_a_record_changed_or_deleted_since_is_refused(stores: Stores, before: Item) -> None:
    put(stores, "1", before)
    record = read(stores)
    writes = [stores.records.change(record, {"a": 3}, "J1"), stores.records.remove(record, "J1")]
    put(stores, "1", {"a": 1, "version": 5})
    assert [refused(stores, write) for write in writes] == [True, True]
    stores.store.transact("gone", [Delete(Key(TENANT, "1", Table.RECORDS))])
    assert [refused(stores, write) for write in writes] == [True, True]
    assert stored(stores) is None


@pytest.mark.parametrize("before", [{"a": 1}, {"a": 1, "version": 4}], ids=["none", "four"])
def test_a_record_is_removed(stores: Stores, before: Item) -> None:
    put(stores, "1", before)
    stores.store.transact("remove", [stores.records.remove(read(stores), "J1")])
    assert stored(stores) is None
    assert stores.records.read(TENANT, ["1"]) == {}


@pytest.mark.parametrize("version", ["7", Decimal("1.5"), True, None], ids=str)
def test_a_version_that_is_no_whole_number_can_never_be_changed(
    stores: Stores, version: Value
) -> None:
    put(stores, "1", {"a": 1, "version": version})
    record = read(stores)
    assert record.version == UNUSABLE
    assert refused(stores, stores.records.change(record, {"a": 2}, "J1"))


@pytest.mark.parametrize("name", ["tenant", "id", "version", "last_job_id"])
def test_reserved_fields_are_not_written(stores: Stores, name: str) -> None:
    put(stores, "1", {"a": 1})
    with pytest.raises(ReservedField, match=name):
        stores.records.change(read(stores), {name: "x", "a": 2}, "J1")
    assert name not in read(stores).fields
