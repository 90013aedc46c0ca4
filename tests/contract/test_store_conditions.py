"""Every condition means the same in memory and in DynamoDB."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.errors import Reason, Refused, Why
from handlers.jobs.words.writes import (
    AnyOf,
    AtMost,
    Below,
    BelowName,
    Check,
    Delete,
    Differs,
    Equals,
    Key,
    Missing,
    Present,
    Put,
    Update,
)
from handlers.testing.job_store import MemoryStore

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Store
    from handlers.jobs.words.writes import Condition, Item, Write

KEY: Final = Key("p", "s")
ITEM: Final[Item] = {
    "n": 5,
    "d": Decimal("0.1"),
    "text": "ä",
    "flag": True,
    "nothing": None,
    "list": ["a", 1],
    "map": {"k": 1},
    "size": "reserved word",
    "more": Decimal("5.5"),
    "zero": 0,
    "word": "z",
}

BOTH: Final = (True, True)
ITEM_ONLY: Final = (True, False)
MISSING_ONLY: Final = (False, True)
NEITHER: Final = (False, False)
"""Whether a condition holds for ITEM, and for a missing item."""

TABLE: Final[list[tuple[Condition, tuple[bool, bool]]]] = [
    (Equals("n", 5), ITEM_ONLY),
    (Equals("n", Decimal("5.0")), ITEM_ONLY),
    (Equals("n", 6), NEITHER),
    (Equals("n", "5"), NEITHER),
    (Equals("n", value=True), NEITHER),
    (Equals("d", Decimal("0.10")), ITEM_ONLY),
    (Equals("text", "ä"), ITEM_ONLY),
    (Equals("text", "a\u0308"), NEITHER),
    (Equals("flag", value=True), ITEM_ONLY),
    (Equals("list", ["a", 1]), ITEM_ONLY),
    (Equals("list", [1, "a"]), NEITHER),
    (Equals("map", {"k": 1}), ITEM_ONLY),
    (Equals("map", {"k": 2}), NEITHER),
    (Equals("size", "reserved word"), ITEM_ONLY),
    (Differs("n", 5), MISSING_ONLY),
    (Differs("n", 6), BOTH),
    (Differs("n", "5"), BOTH),
    (Differs("absent", 5), BOTH),
    (Differs("nothing", None), MISSING_ONLY),
    (Below("n", 6), ITEM_ONLY),
    (Below("n", 5), NEITHER),
    (Below("n", Decimal("5.000000000000000001")), ITEM_ONLY),
    (Below("absent", 6), NEITHER),
    (Below("text", "b"), NEITHER),
    (Below("text", "z"), NEITHER),
    (Below("text", "\U0001f600"), ITEM_ONLY),
    (BelowName("n", "more"), ITEM_ONLY),
    (BelowName("more", "n"), NEITHER),
    (BelowName("n", "n"), NEITHER),
    (BelowName("n", "absent"), NEITHER),
    (BelowName("absent", "n"), NEITHER),
    (BelowName("zero", "n"), ITEM_ONLY),
    (BelowName("text", "word"), NEITHER),
    (BelowName("word", "text"), ITEM_ONLY),
    (BelowName("size", "text"), ITEM_ONLY),
    (AtMost("n", 5), ITEM_ONLY),
    (AtMost("n", 4), NEITHER),
    (AtMost("absent", 4), NEITHER),
    (Missing("absent"), BOTH),
    (Missing("n"), MISSING_ONLY),
    (Missing("nothing"), MISSING_ONLY),
    (Missing("pk"), MISSING_ONLY),
    (Present("n"), ITEM_ONLY),
    (Present("nothing"), ITEM_ONLY),
    (Present("pk"), ITEM_ONLY),
    (Present("absent"), NEITHER),
    (AnyOf((Equals("n", 6), Missing("absent"))), BOTH),
    (AnyOf((Equals("n", 6), Equals("n", 7))), NEITHER),
    (AnyOf((Missing("n"), Below("n", 6))), BOTH),
    (AnyOf((Differs("n", 5),)), MISSING_ONLY),
    (AnyOf((AnyOf((Differs("n", 6),)), Equals("n", 5))), BOTH),
    (AnyOf((AnyOf((Equals("n", 6), Equals("n", 5))), Missing("n"))), BOTH),
]

# moto compares as Python does (True is 1, a missing attribute is NULL, "9" is no number but an
# error); DynamoDB compares only values of one type.
MEMORY_ONLY: Final[list[tuple[Condition, tuple[bool, bool]]]] = [
    (Equals("flag", 1), NEITHER),
    (Equals("nothing", None), ITEM_ONLY),
    (Equals("absent", None), NEITHER),
    (Below("n", "9"), NEITHER),
    (BelowName("n", "text"), NEITHER),
]


def name(value: object) -> str:
    return str(value).replace(" ", "")


@pytest.mark.parametrize(("condition", "holds_for"), TABLE, ids=name)
def test_a_condition_holds_or_refuses(
    store: Store, condition: Condition, holds_for: tuple[bool, bool]
) -> None:
    assert holding(store, condition) == holds_for


@pytest.mark.parametrize(("condition", "holds_for"), MEMORY_ONLY, ids=name)
def test_values_of_two_types_are_not_equal(
    condition: Condition, holds_for: tuple[bool, bool]
) -> None:
    assert holding(MemoryStore(), condition) == holds_for


WRITES: Final[list[Any]] = [
    Put(KEY, {"new": 1}, when=(Equals("n", 6),)),
    Update(KEY, set={"new": 1}, when=(Equals("n", 6),)),
    Update(KEY, add={"n": 1}, when=(Equals("n", 6),)),
    Delete(KEY, when=(Equals("n", 6),)),
    Check(KEY, when=(Equals("n", 6),)),
]


@pytest.mark.parametrize("write", WRITES, ids=name)
@pytest.mark.parametrize("beside", [[], [Put(Key("p", "other"), {"x": 1})]], ids=["lone", "two"])
@pytest.mark.parametrize("before", [None, ITEM], ids=["missing", "present"])
def test_a_refusal_carries_the_item_and_changes_nothing(
    store: Store, write: Write, beside: list[Write], before: Item | None
) -> None:
    if before is not None:
        store.transact("setup", [Put(KEY, before)])

    with pytest.raises(Refused) as refused:
        store.transact("refused", [*beside, write])

    *others, reason = refused.value.reasons
    assert others == [None] * len(beside)
    assert reason == Reason(Why.CONDITION, before, reason.message if reason else "")
    assert store.get(KEY) == before
    assert store.get(Key("p", "other")) is None


def test_all_conditions_of_a_write_have_to_hold(store: Store) -> None:
    store.transact("setup", [Put(KEY, {"a": 1, "b": 2})])
    assert accepted(store, Check(KEY, (Equals("a", 1), Equals("b", 2))))
    assert not accepted(store, Check(KEY, (Equals("a", 1), Equals("b", 1))))
    assert not accepted(store, Check(KEY, (Equals("a", 2), AnyOf((Missing("x"), Missing("y"))))))


def test_reasons_stand_at_the_place_of_their_writes(store: Store) -> None:
    keys = [Key("p", str(number)) for number in range(6)]
    store.transact("setup", [Put(key, {"at": i}) for i, key in enumerate(keys) if i != 4])
    wrong = (Equals("at", 99),)
    writes: list[Write] = [
        Check(keys[0], (Present("at"),)),
        Update(keys[1], set={"new": 1}, when=wrong),
        Put(keys[2], {"at": 3}),
        Delete(keys[3], when=wrong),
        Put(keys[4], {"at": 4}, when=wrong),
        Check(keys[5], wrong),
    ]

    with pytest.raises(Refused) as refused:
        store.transact("refused", writes)

    seen = [reason and (reason.why, reason.item) for reason in refused.value.reasons]
    condition = Why.CONDITION
    assert seen == [
        None,
        (condition, {"at": 1}),
        None,
        (condition, {"at": 3}),
        (condition, None),
        (condition, {"at": 5}),
    ]
    assert store.get(keys[2]) == {"at": 2}


def holding(store: Store, condition: Condition) -> tuple[bool, bool]:
    on_missing = accepted(store, Check(KEY, (condition,)))
    store.transact("setup", [Put(KEY, ITEM)])
    return accepted(store, Check(KEY, (condition,))), on_missing


def accepted(store: Store, write: Write) -> bool:
    try:
        store.transact("check", [write])
    except Refused as refused:
        if [reason and reason.why for reason in refused.reasons] != [Why.CONDITION]:
            raise
        return False
    return True
