"""JSON whose numbers are never floats, refused in the same words by every Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final

from pydantic_core import from_json

MAX_NESTED: Final = 200
"""Levels of lists and objects inside a value: some versions of Python would read many more."""


class NotJson(ValueError):
    """A text that is not JSON, or not JSON that this module accepts."""


class RepeatedName(NotJson):
    """An object that has one name twice: which of the values is meant cannot be known."""

    def __init__(self, path: tuple[str | int, ...]) -> None:
        super().__init__(f"the name {path[-1]!r} is given more than once")
        self.path = path
        """Names and indexes from the value's top to the repeated name."""


def exact_loads(text: str | bytes, *, nested: int = MAX_NESTED) -> Any:
    """The JSON value with numbers as int or Decimal. nested: levels inside it. Raises NotJson, also
    for more levels, for a number beyond any decimal, and for NaN and Infinity, which are no JSON;
    RepeatedName.
    """
    try:
        return json_loads(
            text, nested=nested, parse_float=Decimal, object_pairs_hook=_without_repeats
        )
    except _Repeated:
        marked = json_loads(text, nested=nested, parse_float=Decimal, object_pairs_hook=_marked)
        raise RepeatedName(_path_to_mark(marked) or ("",)) from None


def json_loads(
    text: str | bytes,
    *,
    nested: int = MAX_NESTED,
    parse_int: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Like json.loads. The hooks must be functions of a module, since decoders are cached by them;
    a hook may raise NotJson. Raises NotJson.

    Errors have the same words and limits on every version of Python, unlike json's own.
    """
    try:
        known = text if isinstance(text, str) else text.decode()
        value = _decoder(parse_int, parse_float, object_pairs_hook).decode(known)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise _not_json(known, nested) from error
    except UnicodeDecodeError as error:
        raise NotJson("not UTF-8") from error
    except RecursionError as error:
        raise _too_deep(nested) from error
    except InvalidOperation as error:
        raise NotJson("a number no record can hold") from error
    except ValueError as error:
        raise NotJson("an integer over the limit of digits") from error
    if known.count("[") + known.count("{") > nested:
        _check_nesting(value, nested)
    return value


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


def longer_than(value: object, limit: int) -> bool:
    """Whether ``exact_json(value)`` has more than ``limit`` characters. Reads no more of the value
    than that takes: writing it all down can take seconds."""
    size, left = 0, [value]
    while left:
        part = left.pop()
        match part:
            case Mapping():
                size += len("{}") + max(0, len(part) - 1)
                for name, inner in part.items():
                    size += len(json.dumps(str(name))) + len(":")
                    if size > limit:
                        return True
                    left.append(inner)
            case Sequence() if not isinstance(part, str):
                # Each part has a character at least.
                size += len("[]") + max(0, len(part) - 1)
                if size + len(part) > limit:
                    return True
                left.extend(part)
            case _:
                size += len(exact_json(part))
        if size > limit:
            return True
    return False


@cache
def _decoder(
    parse_int: Callable[[str], Any] | None,
    parse_float: Callable[[str], Any] | None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None,
) -> json.JSONDecoder:
    """A cached decoder: json.loads makes one for every text, which costs more than decoding most
    lines of a file."""
    return json.JSONDecoder(
        parse_int=parse_int,
        parse_float=parse_float,
        parse_constant=_no_constant,
        object_pairs_hook=object_pairs_hook,
    )


def _not_json(text: str, nested: int) -> NotJson:
    """The error of pydantic's parser, whose version is locked, for a text that is not JSON."""
    try:
        from_json(text.encode(errors="replace"))
    except ValueError as error:
        # The parser's own limit is that of MAX_NESTED.
        return _too_deep(nested) if "recursion" in str(error) else NotJson(str(error))
    return NotJson("not as RFC 8259 defines it")


def _check_nesting(value: object, nested: int) -> None:
    level = [value]
    for _ in range(nested + 1):
        inside = [part for outer in level for part in _parts(outer)]
        level = [part for part in inside if isinstance(part, dict | list)]
        if not level:
            return
    raise _too_deep(nested)


def _parts(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _too_deep(nested: int) -> NotJson:
    return NotJson(f"nested deeper than {nested} levels")


class _Repeated(NotJson):
    """Raised inside the decoder, which does not know the path."""


class _Marked(dict[str, Any]):
    """An object with a repeated name."""

    name: str


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Repeated("a name is given more than once")
    return found


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked, seen = _Marked(found), set[str]()
    for name, _ in pairs:
        if name in seen:
            marked.name = name
            break
        seen.add(name)
    return marked


def _path_to_mark(value: object) -> tuple[str | int, ...] | None:
    """The path to a repeated name; None when there is none in the value."""
    if isinstance(value, _Marked):
        return (value.name,)
    parts: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        if (inner := _path_to_mark(part)) is not None:
            return (key, *inner)
    return None


def _no_constant(name: str) -> None:
    raise NotJson(f"{name} is not a JSON number")
