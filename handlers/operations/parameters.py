"""What the parameters of operations are made of. Numbers stay exact: no float ever enters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from ..jobs.words.exact_json import NotJson, exact_loads
from ..jobs.words.stored_values import BadValue, number

RESERVED: Final = frozenset({"tenant", "id", "version", "last_job_id"})
"""Attributes of a record that are Fairlane's own."""
MAX_NAME_BYTES: Final = 255
MAX_DEPTH: Final = 16
"""Levels of lists and maps inside one field (DynamoDB allows 32 in an item)."""

_JSON_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class Parameters(BaseModel):
    """The base of every operation's parameters: frozen, no unknown fields, exact JSON numbers.

    pydantic reads the JSON number 12345678901234567890.1 through a float, which loses digits;
    ``model_validate_json`` of this class does not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """The parameters in a JSON text. Raises pydantic.ValidationError, also for bad JSON."""
        try:
            content = exact_loads(
                bytes(json_data) if isinstance(json_data, bytearray) else json_data
            )
        except NotJson as error:
            problem = PydanticCustomError(
                "json_invalid", "not usable JSON: {error}", {"error": str(error)}
            )
            raise ValidationError.from_exception_data(
                cls.__name__, [InitErrorDetails(type=problem, input=None)]
            ) from error
        return cls.model_validate(content, **options)


def _text(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("has half of a surrogate pair")
    return text


def _name(name: str) -> str:
    if not name:
        raise ValueError("a name must not be empty")
    if len(_text(name).encode()) > MAX_NAME_BYTES:
        raise ValueError(f"a name has more than {MAX_NAME_BYTES} bytes")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError("a name has a control character")
    return name


def _field_name(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"the field {name!r} is reserved")
    return _name(name)


def _number(value: int | Decimal) -> int | Decimal:
    try:
        return number(value)
    except BadValue as error:
        raise ValueError(str(error)) from error


def _decimal(value: Decimal) -> Decimal:
    return Decimal(_number(value))


def _exact(value: object) -> object:
    if isinstance(value, bool | float):
        # ValueError, not TypeError: pydantic turns only the former into a field's error.
        kind = "a boolean" if isinstance(value, bool) else "a binary floating-point number"
        raise ValueError(f"must be an exact number, not {kind}")  # noqa: TRY004
    if isinstance(value, str) and not _JSON_NUMBER.fullmatch(value):
        raise ValueError("is not written like a JSON number")
    return value


def _value(value: object, depth: int = 0) -> object:
    if depth > MAX_DEPTH:
        raise ValueError(f"lists and maps nested more than {MAX_DEPTH} deep")
    match value:
        case bool():
            return value
        case str():
            return _text(value)
        case int() | Decimal():
            return _number(value)
        case Mapping():
            return {_name(name): _value(part, depth + 1) for name, part in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray):
            return [_value(part, depth + 1) for part in value]
        case None:
            raise ValueError("null stands for removing a whole field, not inside a list or map")
    raise ValueError(f"a {type(value).__name__} cannot be stored")


def _field_value(value: object) -> object:
    return None if value is None else _value(value)


FieldName = Annotated[str, AfterValidator(_field_name)]
"""The name of a record's field that a job may write."""
FieldValue = Annotated[Any, AfterValidator(_field_value)]
"""What a field can be set to (``jobs.store.Value``); None means no field."""
Number = Annotated[Decimal, BeforeValidator(_exact), AfterValidator(_decimal)]
"""A number a record can hold, sent as a JSON number or as a string in the same notation."""
