"""The effect of one write on one item."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ..jobs.storage.validation import check_values
from ..jobs.words.errors import Reason, Why
from ..jobs.words.stored_values import MAX_ITEM_BYTES, BadValue, copied, number, size_of, storable
from ..jobs.words.writes import Check, Delete, Index, Key, Put, Table, Update
from .conditions import holds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from ..jobs.words.writes import Item, Value, Write

    KeyNames: TypeAlias = Mapping[Table, tuple[str, str]]

_INDEX_KEYS: Final = tuple(
    entry for index in Index for entry in ((index.pk, False), (index.sk, index is Index.DUE))
)
"""Index keys, and whether each is a number. One has to have its type, even if it is alone."""


def item_after(write: Write, old: Item | None, names: KeyNames) -> dict[str, Value] | Reason | None:
    """The item after the write, None when there is none, or why the write is refused.

    old: the item before, without its key; None when it does not exist.
    Raises TypeError for a value or operand that is of no storable type.
    """
    try:
        check_values(write)
        new = _written(write, old)
    except BadValue as error:
        return Reason(Why.INVALID, message=str(error))
    seen = {} if old is None else {**old, **_key_attributes(write.key, names)}
    if not holds(write.when, seen):
        return Reason(Why.CONDITION, None if old is None else copied(old))
    return new


def _written(write: Write, old: Item | None) -> dict[str, Value] | None:
    match write:
        case Put():
            new = storable(write.item)
        case Update():
            new = _updated(write, old or {})
        case Check():
            return None if old is None else dict(old)
        case Delete():
            return None
    _check_item(write.key, new)
    return new


def _updated(write: Update, old: Item) -> dict[str, Value]:
    kept = {name: value for name, value in old.items() if name not in write.remove}
    added: dict[str, Value] = {}
    for name, amount in write.add.items():
        before = old.get(name, 0)
        if isinstance(before, bool) or not isinstance(before, int | Decimal):
            raise BadValue(f"attribute {name!r} is not a number to add to")
        added[name] = number(before + amount)
    return {**kept, **storable(write.set), **added}


def _check_item(key: Key, item: Item) -> None:
    size = size_of(item) + len(key.pk.encode()) + len(key.sk.encode())
    if size > MAX_ITEM_BYTES:
        raise BadValue(f"an item of about {size} bytes; the most is {MAX_ITEM_BYTES}")
    if key.table is Table.CONTROL:
        for name, is_number in _INDEX_KEYS:
            if name in item and not _can_be_sorted(item[name], is_number=is_number):
                raise BadValue(f"index key {name!r} can't be {item[name]!r}")


def _can_be_sorted(value: Value, *, is_number: bool) -> bool:
    if is_number:
        return isinstance(value, int | Decimal) and not isinstance(value, bool)
    return isinstance(value, str) and value != ""


def _key_attributes(key: Key, names: KeyNames) -> dict[str, Value]:
    pk, sk = names[key.table]
    return {pk: key.pk, sk: key.sk}
