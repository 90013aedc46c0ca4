"""Items to and from DynamoDB's attribute values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..jobs.words.stored_values import storable, stored

if TYPE_CHECKING:
    from ..jobs.words.writes import Item, Value

Attributes: TypeAlias = dict[str, Any]
"""Attribute values by name, such as ``{"price": {"N": "1.5"}}``."""

_WHOLE: Final = re.compile(r"-?[0-9]{1,38}")


def encode(item: Item) -> Attributes:
    """Raises TypeError and BadValue like ``stored_values.storable``."""
    return {name: _serialized(value) for name, value in storable(item).items()}


def encode_one(name: str, value: Value) -> dict[str, Any]:
    """The value alone; the name is for errors."""
    return _serialized(stored(name, value))


def decode(attributes: Mapping[str, Any]) -> dict[str, Value]:
    """The item. Sets and binary values of a team's own table come as boto3 reads them."""
    return {name: _value(attribute) for name, attribute in attributes.items()}


def _serialized(value: Value) -> dict[str, Any]:
    """value: in stored form, which has no other types."""
    # Most values are text or whole numbers, and take the short way.
    if type(value) is str:
        return {"S": value}
    if type(value) is int:
        return {"N": str(value)}
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case Mapping():
            return {"M": {name: _serialized(each) for name, each in value.items()}}
        case Sequence():
            return {"L": [_serialized(each) for each in value]}
        case _:
            return {"N": str(value)}


def _value(attribute: Mapping[str, Any]) -> Any:
    """A number written as plain digits is an int; any other stays the Decimal it was."""
    [(kind, value)] = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return int(value) if _WHOLE.fullmatch(value) else Decimal(value)
        case "NULL":
            return None
        case "L":
            return [_value(each) for each in value]
        case "M":
            return {name: _value(each) for name, each in value.items()}
        case _:
            return _set_or_bytes(attribute)


def _set_or_bytes(attribute: Any) -> Any:
    from boto3.dynamodb.types import TypeDeserializer  # noqa: PLC0415  slow to import, and rare

    return TypeDeserializer().deserialize(attribute)
