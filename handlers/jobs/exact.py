"""JSON whose numbers are never floats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any


def exact_loads(text: str | bytes) -> Any:
    """The JSON value with numbers as int or Decimal. Raises ValueError, also for a number beyond
    any decimal and for NaN and Infinity, which are no JSON; RecursionError for endless nesting."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except InvalidOperation as error:
        raise ValueError("a number no record can hold") from error


def exact_json(value: object) -> str:
    """Compact JSON of plain values, with Decimals as the numbers they are."""
    match value:
        case Decimal():
            return str(value)
        case Mapping():
            pairs = (f"{json.dumps(str(k))}:{exact_json(v)}" for k, v in value.items())
            return "{" + ",".join(pairs) + "}"
        case str() | bool() | int() | None:
            return json.dumps(value)
        case Sequence():
            return "[" + ",".join(exact_json(part) for part in value) + "]"
        case _:
            raise TypeError(f"no exact JSON for {type(value).__name__}")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
