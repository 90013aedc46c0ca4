"""Items to and from DynamoDB's attribute values."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from ..jobs.words.stored_values import storable, stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.writes import Item, Value

Attributes: TypeAlias = dict[str, Any]
"""Attribute values by name, such as ``{"price": {"N": "1.5"}}``."""

_WHOLE: Final = re.compile(r"-?[0-9]{1,38}")


class _Reader(TypeDeserializer):
    def deserialize(self, value: Any) -> Any:
        """A number written as plain digits is an int; any other stays the Decimal it was."""
        if (text := value.get("N")) is not None:
            return int(text) if _WHOLE.fullmatch(text) else Decimal(text)
        if (text := value.get("S")) is not None:
            return text
        return super().deserialize(value)


_writer: Final = TypeSerializer()
_reader: Final = _Reader()


def encode(item: Item) -> Attributes:
    """Raises TypeError and BadValue like ``stored_values.storable``."""
    return {name: _serialized(value) for name, value in storable(item).items()}


def encode_one(name: str, value: Value) -> dict[str, Any]:
    """The value alone; the name is for errors."""
    return _serialized(stored(name, value))


def _serialized(value: Value) -> dict[str, Any]:
    """Most values are text or whole numbers, and take the short way."""
    if type(value) is str:
        return {"S": value}
    if type(value) is int:
        return {"N": str(value)}
    return dict(_writer.serialize(value))


def decode(attributes: Mapping[str, Any]) -> dict[str, Value]:
    """The item. Sets and binary values of a team's own table come as boto3 reads them."""
    return {name: _reader.deserialize(value) for name, value in attributes.items()}
