"""Writes that no data could make one good transaction."""

from __future__ import annotations

import pytest

from handlers.jobs.storage.validation import (
    MAX_PK_BYTES,
    MAX_SK_BYTES,
    check_count,
    check_key,
    check_transaction,
)
from handlers.jobs.words.stored_values import BadValue
from handlers.jobs.words.writes import (
    AnyOf,
    Below,
    Check,
    Delete,
    Index,
    Key,
    Missing,
    Put,
    Table,
    Update,
    Write,
)

KEY = Key("p", "s")


@pytest.mark.parametrize(
    ("writes", "why"),
    [
        ([], "0 writes"),
        ([Delete(Key("p", str(n))) for n in range(101)], "101 writes"),
        ([Delete(KEY), Put(KEY, {"a": 1})], "two writes on one item"),
        ([Check(KEY, when=())], "a check without a condition"),
        ([Update(KEY)], "changes nothing"),
        ([Update(KEY, set={"a": 1}, remove=("a",))], "one attribute twice"),
        ([Put(KEY, {"pk": "other"})], "on the key"),
        ([Delete(KEY, when=(AnyOf(()),))], "AnyOf of nothing"),
    ],
)
def test_what_is_no_transaction(writes: list[Write], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_transaction(writes)


def test_an_order_needs_something_that_has_one() -> None:
    unordered = AnyOf((Below("a", True),))  # noqa: FBT003  the stored value
    with pytest.raises(TypeError, match="'a'"):
        check_transaction([Delete(KEY, when=(unordered,))])


def test_100_writes_and_a_records_own_pk_pass() -> None:
    check_transaction([Delete(Key("p", str(n)), when=(Missing("a"),)) for n in range(100)])
    check_transaction([Put(Key("p", "s", Table.RECORDS), {"pk": "a field"})])


@pytest.mark.parametrize(
    "key", [Key("", "s"), Key("p", ""), Key("p" * 2049, "s"), Key("p", "é" * 513)]
)
def test_what_is_no_key(key: Key) -> None:
    with pytest.raises(BadValue):
        check_key(key)


def test_the_longest_key_passes() -> None:
    check_key(Key("p" * MAX_PK_BYTES, "s" * MAX_SK_BYTES))


def test_a_count_is_asked_in_the_order_of_its_index() -> None:
    check_count(Index.DUE, 5, 1)
    check_count(Index.HELD, "j", 1)
    for index, before in ((Index.DUE, "j"), (Index.HELD, 5)):
        with pytest.raises(ValueError, match="not sorted by"):
            check_count(index, before, 1)
    with pytest.raises(ValueError, match="at least 1"):
        check_count(Index.DUE, 5, 0)
