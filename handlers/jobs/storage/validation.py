"""Checks of a transaction that need no stored data: both stores make them before they read."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ..words.stored_values import BadValue, storable
from ..words.writes import (
    MAX_ACTIONS,
    AnyOf,
    AtMost,
    Below,
    Check,
    Differs,
    Equals,
    Index,
    Put,
    Table,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..words.writes import Key, When, Write

MAX_PK_BYTES: Final = 2048
MAX_SK_BYTES: Final = 1024
_CONTROL_KEY: Final = frozenset({"pk", "sk"})


def check_transaction(writes: Sequence[Write]) -> None:
    """Raise ValueError when no data could make these writes one good transaction."""
    if not 1 <= len(writes) <= MAX_ACTIONS:
        raise ValueError(f"{len(writes)} writes in one transaction, not 1 to {MAX_ACTIONS}")
    if len({write.key for write in writes}) != len(writes):
        raise ValueError("two writes on one item in one transaction")
    for write in writes:
        _check_write(write)


def check_count(index: Index, before: str | int, at_most: int) -> None:
    """Raise ValueError for what can't be counted."""
    if isinstance(before, int) != (index is Index.DUE):
        raise ValueError(f"index {index} is not sorted by such a thing as {before!r}")
    if at_most < 1:
        raise ValueError(f"at most {at_most} is not at least 1")


def check_values(write: Write) -> None:
    """Raise BadValue for a key or operand no store can hold, TypeError for a float and the like."""
    check_key(write.key)
    _check_operands(write.when)


def check_key(key: Key) -> None:
    """Raise BadValue for what can't be a key."""
    storable({"pk": key.pk, "sk": key.sk})
    pk, sk = len(key.pk.encode()), len(key.sk.encode())
    if not 1 <= pk <= MAX_PK_BYTES or not 1 <= sk <= MAX_SK_BYTES:
        raise BadValue(f"a key of {pk} and {sk} bytes")


def _check_write(write: Write) -> None:
    _check_condition(write.when)
    match write:
        case Check():
            if not write.when:
                raise ValueError("a check without a condition")
            return
        case Put():
            paths = [*write.item]
        case Update():
            paths = [*write.set, *write.add, *write.remove]
            if not paths:
                raise ValueError("an update that changes nothing")
        case _:
            return
    if len(set(paths)) != len(paths):
        raise ValueError("an update names one attribute twice")
    if write.key.table is Table.CONTROL and _CONTROL_KEY & set(paths):
        raise ValueError("a write on the key of its item")


def _check_condition(when: When) -> None:
    for condition in when:
        match condition:
            case AnyOf(conditions):
                if not conditions:
                    raise ValueError("AnyOf of nothing")
                _check_condition(conditions)
            case Below(name, value) | AtMost(name, value):
                if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
                    raise TypeError(f"attribute {name!r} can't be ordered against {value!r}")


def _check_operands(when: When) -> None:
    for condition in when:
        match condition:
            case AnyOf(conditions):
                _check_operands(conditions)
            case Equals(name, value) | Differs(name, value) | Below(name, value):
                storable({name: value})
            case AtMost(name, value):
                storable({name: value})
