"""Writes as the arguments of DynamoDB's calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..jobs.storage.validation import check_key
from ..jobs.words.stored_values import MAX_ITEM_BYTES, BadValue, size_of
from ..jobs.words.writes import Check, Delete, Put, Table, Update
from .attributes import encode
from .expressions import condition_parameters, update_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

    from ..jobs.words.record_schema import RecordSchema
    from ..jobs.words.writes import Item, Key, Write

Call: TypeAlias = dict[str, Any]
"""The arguments of ``PutItem`` and its like; also one action of a transaction."""

CONTROL_KEY: Final = ("pk", "sk")
_ALL_OLD: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


@dataclass(frozen=True, eq=False)
class EncodedUpdate(Update):
    """An update that knows its call. A changed copy of it does not, and is encoded anew."""

    call: Call | None = field(default=None, init=False, repr=False)


@dataclass(frozen=True, eq=False)
class EncodedDelete(Delete):
    """See ``EncodedUpdate``."""

    call: Call | None = field(default=None, init=False, repr=False)


class Calls:
    """The call of each write on some tables."""

    def __init__(self, tables: Mapping[Table, str], schema: RecordSchema) -> None:
        self._tables = tables
        self.keys: Final = {Table.CONTROL: CONTROL_KEY, Table.RECORDS: (schema.tenant, schema.id)}
        """The attributes of each table's primary key."""

    def of(self, write: Write) -> Call:
        """The call of a write. Raises BadValue for a value no store can hold, TypeError for a float
        and the like."""
        if isinstance(write, EncodedUpdate | EncodedDelete) and self._fits(write.call):
            return write.call
        check_key(write.key)
        match write:
            case Put():
                place: Call = {
                    "TableName": self._tables[write.key.table],
                    "Item": encode({**write.item, **self._key(write.key)}),
                }
                parameters = condition_parameters(write.when)
                _check_size(write.item)
            case Update():
                place, parameters = self.place(write.key), update_parameters(write)
                _check_size(write.set)
            case Delete() | Check():
                place, parameters = self.place(write.key), condition_parameters(write.when)
        return {**place, **parameters, **_ALL_OLD}

    def ahead(self, write: Update | Delete) -> Update | Delete:
        """The same write with its call made ahead, so that its transaction is sent sooner. A write
        that can't be encoded is returned as it is, and refused in its transaction."""
        try:
            call = self.of(write)
        except (BadValue, TypeError):
            return write
        encoded: EncodedUpdate | EncodedDelete
        match write:
            case Update():
                encoded = EncodedUpdate(write.key, write.set, write.add, write.remove, write.when)
            case Delete():
                encoded = EncodedDelete(write.key, write.when)
        object.__setattr__(encoded, "call", call)
        return encoded

    def place(self, key: Key) -> Call:
        """The arguments that name one item."""
        return {"TableName": self._tables[key.table], "Key": encode(self._key(key))}

    def _key(self, key: Key) -> dict[str, str]:
        return dict(zip(self.keys[key.table], (key.pk, key.sk), strict=True))

    def _fits(self, call: Call | None) -> TypeGuard[Call]:
        return call is not None and call["TableName"] in self._tables.values()


def _check_size(attributes: Item) -> None:
    """Raise BadValue for attributes that are too large: DynamoDB refuses such a request without
    saying which item it was."""
    if (size := size_of(attributes)) > MAX_ITEM_BYTES:
        raise BadValue(f"an item of about {size} bytes; the most is {MAX_ITEM_BYTES}")
