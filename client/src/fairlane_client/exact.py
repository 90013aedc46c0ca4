"""JSON whose numbers are never floats: 0.1 is sent as 0.1, whatever a processor makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from .problems import InexactNumber


def exact_loads(text: str | bytes) -> Any:
    """The JSON value with numbers as int or Decimal. Raises ValueError, also for NaN and Infinity,
    which are no JSON, for a number beyond any Decimal, and for a name that an object has twice;
    RecursionError for endless nesting."""
    try:
        return json.loads(
            text,
            parse_float=Decimal,
            parse_constant=_no_constant,
            object_pairs_hook=_without_repeats,
        )
    except InvalidOperation as error:
        raise ValueError("a number no record can hold") from error


def exact_json(value: object, where: str = "") -> str:
    """Compact JSON of plain values, with Decimals as the numbers they are.

    where: the field's name, for the message. Raises InexactNumber.
    """
    match value:
        case Decimal() if value.is_finite():
            return str(value)
        case Mapping():
            pairs = (
                f"{json.dumps(str(k))}:{exact_json(v, f'{where}.{k}' if where else str(k))}"
                for k, v in value.items()
            )
            return "{" + ",".join(pairs) + "}"
        case str() | bool() | int() | None:
            return json.dumps(value)
        case Sequence() if not isinstance(value, bytes | bytearray):
            parts = (exact_json(part, f"{where}[{at}]") for at, part in enumerate(value))
            return "[" + ",".join(parts) + "]"
        case _:
            raise InexactNumber(_why(value, where or "the value"))


def _why(value: object, where: str) -> str:
    match value:
        case float():
            return (
                f"{where} is the float {value!r}, which is not exact: "
                f'give an int or Decimal("{value!r}")'
            )
        case Decimal():
            return f"{where} is {value}, which is no JSON number"
        case _:
            return f"{where} is of type {type(value).__name__}, which JSON does not have"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name!r} is given more than once")
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
