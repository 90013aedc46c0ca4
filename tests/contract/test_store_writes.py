"""What writes do, in memory and in DynamoDB."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.errors import Refused, Why
from handlers.jobs.words.writes import (
    MAX_ACTIONS,
    AnyOf,
    Below,
    Check,
    Delete,
    Equals,
    Key,
    Missing,
    Present,
    Put,
    Table,
    Update,
)
from handlers.testing.job_store import MemoryStore

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Store
    from handlers.jobs.words.writes import Value, Write

KEY: Final = Key("p", "s")
OTHER: Final = Key("p", "t")
RECORD: Final = Key("p", "s", Table.RECORDS)


# --- puts, updates, deletes -------------------------------------------------------------------


def test_a_missing_item_is_none(store: Store) -> None:
    assert store.get(KEY) is None


def test_put_replaces_the_whole_item(store: Store) -> None:
    store.transact("first", [Put(KEY, {"a": 1, "b": 2})])
    store.transact("second", [Put(KEY, {"b": 3})])
    assert store.get(KEY) == {"b": 3}


def test_put_of_nothing_is_an_item(store: Store) -> None:
    store.transact("put", [Put(KEY, {})])
    assert store.get(KEY) == {}


def test_put_if_missing_happens_once(store: Store) -> None:
    write = Put(KEY, {"a": 1}, when=(Missing("pk"),))
    store.transact("first", [write])
    with pytest.raises(Refused):
        store.transact("second", [write])


def test_update_sets_adds_and_removes(store: Store) -> None:
    store.transact("setup", [Put(KEY, {"a": 1, "b": 2, "c": 3, "d": 4})])
    store.transact("update", [Update(KEY, set={"a": "x"}, add={"b": -5, "new": 2}, remove=("c",))])
    assert store.get(KEY) == {"a": "x", "b": -3, "new": 2, "d": 4}


def test_update_creates_what_is_missing(store: Store) -> None:
    store.transact("update", [Update(KEY, set={"a": 1}, add={"n": 1}, remove=("never",))])
    assert store.get(KEY) == {"a": 1, "n": 1}


def test_a_counter_counts(store: Store) -> None:
    for _ in range(3):
        store.transact("count", [Update(KEY, add={"n": 2})])
    assert store.get(KEY) == {"n": 6}


def test_delete_removes_and_may_be_repeated(store: Store) -> None:
    store.transact("setup", [Put(KEY, {"a": 1})])
    store.transact("delete", [Delete(KEY, when=(Equals("a", 1),))])
    assert store.get(KEY) is None
    store.transact("again", [Delete(KEY)])


def test_conditions_see_the_item_before_its_own_write(store: Store) -> None:
    store.transact("setup", [Put(KEY, {"n": 1})])
    store.transact("update", [Update(KEY, add={"n": 1}, when=(Equals("n", 1),))])
    assert store.get(KEY) == {"n": 2}


def test_what_was_read_is_a_copy(store: Store) -> None:
    store.transact("setup", [Put(KEY, {"list": [1], "map": {"k": [2]}})])
    read: Any = store.get(KEY)
    read["list"].append(3)
    read["map"]["k"].append(4)
    assert store.get(KEY) == {"list": [1], "map": {"k": [2]}}


def test_what_a_refusal_shows_is_a_copy(store: Store) -> None:
    store.transact("setup", [Put(KEY, {"list": [1]})])
    with pytest.raises(Refused) as refused:
        store.transact("refused", [Check(KEY, (Missing("list"),))])
    shown: Any = refused.value.reasons[0]
    shown.item["list"].append(2)
    assert store.get(KEY) == {"list": [1]}


def test_what_was_written_is_a_copy(store: Store) -> None:
    inner: list[Value] = [1]
    store.transact("setup", [Put(KEY, {"list": inner})])
    inner.append(2)
    assert store.get(KEY) == {"list": [1]}


# --- transactions -----------------------------------------------------------------------------


def test_a_transaction_spans_both_tables(store: Store) -> None:
    store.transact("both", [Put(KEY, {"in": "control"}), Put(RECORD, {"in": "records"})])
    assert store.get(KEY) == {"in": "control"}
    assert store.get(RECORD) == {"in": "records"}


@pytest.mark.parametrize("refusing", [KEY, RECORD], ids=["control", "records"])
def test_a_refusal_in_one_table_undoes_the_other(store: Store, refusing: Key) -> None:
    store.transact("setup", [Put(KEY, {"n": 1}), Put(RECORD, {"n": 1})])
    writes: list[Write] = [
        Update(key, set={"n": 2}, when=(Equals("n", 9 if key == refusing else 1),))
        for key in (KEY, RECORD)
    ]
    with pytest.raises(Refused) as refused:
        store.transact("both", writes)
    assert [r.item if r else None for r in refused.value.reasons] == [
        {"n": 1} if key == refusing else None for key in (KEY, RECORD)
    ]
    assert store.get(KEY) == store.get(RECORD) == {"n": 1}


def test_a_hundred_writes_are_one_transaction(store: Store) -> None:
    store.transact("full", [Put(Key("p", str(i)), {"i": i}) for i in range(MAX_ACTIONS)])
    assert len(store.query_partition("p", sk_prefix="", limit=200).found) == MAX_ACTIONS


FLOAT: Final[Any] = 1.5
NUMBERED: Final[Any] = {1: 2}

MISTAKES: Final[dict[str, tuple[type[Exception], list[Any]]]] = {
    "nothing": (ValueError, []),
    "101 writes": (ValueError, [Put(Key("p", str(i)), {}) for i in range(MAX_ACTIONS + 1)]),
    "two on one item": (ValueError, [Put(KEY, {}), Check(KEY, (Missing("pk"),))]),
    "empty check": (ValueError, [Check(KEY, ())]),
    "empty update": (ValueError, [Update(KEY, when=(Present("pk"),))]),
    "any of nothing": (ValueError, [Delete(KEY, when=(AnyOf(()),))]),
    "set and removed": (ValueError, [Update(KEY, set={"a": 1}, remove=("a",))]),
    "set and added": (ValueError, [Update(KEY, set={"a": 1}, add={"a": 1})]),
    "key as attribute": (ValueError, [Put(KEY, {"pk": "other"})]),
    "order of a list": (TypeError, [Delete(KEY, when=(Below("a", [1]),))]),
    "float": (TypeError, [Put(KEY, {"price": FLOAT})]),
    "float in a condition": (TypeError, [Delete(KEY, when=(Equals("price", FLOAT),))]),
    "bytes": (TypeError, [Put(KEY, {"price": b"1"})]),
    "number as a map's key": (TypeError, [Put(KEY, {"price": NUMBERED})]),
}


@pytest.mark.parametrize(("error", "writes"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_no_refusal_and_writes_nothing(
    store: Store, error: type[Exception], writes: list[Write]
) -> None:
    with pytest.raises(error):
        store.transact("mistake", [*writes, Put(OTHER, {})] if len(writes) == 1 else writes)
    assert store.get(KEY) is None
    assert store.get(OTHER) is None


@pytest.mark.parametrize("item", [{"price": 1.5}, {"a": {"price": [0, 1.5]}}], ids=["top", "deep"])
def test_a_float_is_named(store: Store, item: Any) -> None:
    with pytest.raises(TypeError, match=r"price.*float"):
        store.transact("float", [Put(KEY, item)])


IMPOSSIBLE: Final[dict[str, Any]] = {
    "39 digits": Put(KEY, {"n": 10**38 + 1}),
    "39 decimals": Put(KEY, {"n": Decimal("1." + "0" * 37 + "1")}),
    "too large": Put(KEY, {"n": Decimal("1E+126")}),
    "too small": Update(KEY, set={"n": Decimal("1E-131")}),
    "nan": Put(KEY, {"n": Decimal("NaN")}),
    "infinite": Put(KEY, {"n": Decimal("Infinity")}),
    "half a surrogate": Put(KEY, {"text": "\ud800"}),
    "half a surrogate in a name": Update(KEY, set={"\ud800": 1}),
    "half a surrogate in a condition": Delete(KEY, when=(Equals("a", "\ud800"),)),
    "400 KB": Put(KEY, {"text": "x" * 400 * 1024}),
    "400 KB of two bytes": Update(KEY, set={"text": "ä" * 200 * 1024}),
    "empty key": Put(Key("p", ""), {}),
    "long key": Put(Key("p", "x" * 1025), {}),
}


@pytest.mark.parametrize("write", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_no_store_can_hold_is_refused_at_its_place(store: Store, write: Write) -> None:
    with pytest.raises(Refused) as refused:
        store.transact("impossible", [Put(OTHER, {}), write, Put(Key("p", "u"), {})])
    assert [reason and reason.why for reason in refused.value.reasons] == [None, Why.INVALID, None]
    assert not refused.value.only_contention
    assert store.get(OTHER) is None


# moto accepts these. DynamoDB refuses them (API reference of TransactWriteItems, ValidationError).
INVALID_LATER: Final[dict[str, Any]] = {
    "count what is no number": Update(KEY, add={"text": 1}),
    "index key of another type": Update(KEY, set={"due_sk": "soon"}),
    "empty index key": Update(KEY, set={"held_pk": ""}),
    "grown beyond 400 KB": Update(KEY, set={"more": "x" * 200_000}),
}


@pytest.mark.parametrize("write", INVALID_LATER.values(), ids=INVALID_LATER)
def test_what_the_item_makes_impossible_is_refused(write: Write) -> None:
    store = MemoryStore()
    store.transact("setup", [Put(KEY, {"text": "x" * 250_000})])
    with pytest.raises(Refused) as refused:
        store.transact("invalid", [write])
    assert [reason and reason.why for reason in refused.value.reasons] == [Why.INVALID]
