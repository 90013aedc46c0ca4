"""The meaning of conditions: the same answers that DynamoDB gives for the same values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

from ..jobs.words.writes import AnyOf, AtMost, Below, BelowName, Differs, Equals, Missing, Present

if TYPE_CHECKING:
    from ..jobs.words.writes import Condition, Item, Value, When


def holds(when: When, item: Item) -> bool:
    """Whether all conditions hold for the item; a missing item is an empty one."""
    return all(_holds(condition, item) for condition in when)


def _holds(condition: Condition, item: Item) -> bool:
    match condition:
        case AnyOf(conditions):
            return any(_holds(one, item) for one in conditions)
        case Present(name):
            return name in item
        case Missing(name):
            return name not in item
        case Equals(name, value):
            return name in item and _equal(item[name], value)
        case Differs(name, value):
            return name not in item or not _equal(item[name], value)
        case Below(name, value) | AtMost(name, value):
            reached = isinstance(condition, AtMost) and _holds(Equals(name, value), item)
            return reached or _below(item.get(name), value)
        case BelowName(name, other):
            return _below(item.get(name), item.get(other))


def _equal(left: Value, right: Value) -> bool:
    """Equal in type and value: True is not 1, and 1 is not "1"."""
    if type(left) is type(right) and isinstance(left, str | int):
        return left == right
    if _kind(left) != _kind(right):
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[k], right[k]) for k in left)
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(_equal, left, right))
    return left == right


def _below(left: Value, right: Value) -> bool:
    """Text in the order of its UTF-8 bytes, which is that of its code points."""
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    if _is_number(left) and _is_number(right):
        return left < right
    return False


def _is_number(value: Value) -> TypeGuard[int | Decimal]:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_list(value: Value) -> TypeGuard[Sequence[Value]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _kind(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case str():
            return "text"
        case int() | Decimal():
            return "number"
        case Mapping():
            return "map"
        case _:
            return "list"
