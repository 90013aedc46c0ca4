"""The values that a store can hold, and the one form in which they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Final

from .errors import FairlaneError

if TYPE_CHECKING:
    from .writes import Item, Value

MAX_ITEM_BYTES: Final = 400 * 1024
MAX_DIGITS: Final = 38
MAX_MAGNITUDE: Final = 125
MIN_MAGNITUDE: Final = -130
"""A number is 0 or between 1E-130 and 9.9…E+125 in size (DynamoDB)."""

_LONG: Final = 10**MAX_DIGITS
_EXACT: Final = Context(prec=MAX_DIGITS, Emin=-999_999, Emax=999_999, traps=[Inexact])


class BadValue(FairlaneError):
    """No store can hold this value."""


def storable(item: Item) -> dict[str, Value]:
    """A deep copy of the attributes in the form in which a store gives them back: sequences are
    lists, text is plain ``str``, and a number has no trailing zeros (DynamoDB trims them) and is
    an ``int`` when it is whole and has at most 38 digits.

    Raises TypeError, naming the attribute, for what is not a Value at all (a float, bytes);
    BadValue for a value of the right type that can't be stored (39 digits, half a surrogate pair).
    """
    return {_text(name, name): _storable(name, value) for name, value in item.items()}


def stored(path: str, value: Value) -> Value:
    """One value in stored form; ``path`` is for errors. Raises like ``storable``."""
    return _storable(path, value)


def number(value: int | Decimal) -> int | Decimal:
    """The stored form of a number. Raises BadValue when it is too long, too large or not finite."""
    if isinstance(value, int) and -_LONG < value < _LONG:
        return int(value)
    exact = Decimal(value)
    if not exact.is_finite():
        raise BadValue(f"{value} is not a finite number")
    try:
        short = exact.normalize(_EXACT)
    except (Inexact, InvalidOperation) as error:
        raise BadValue(f"a number of more than {MAX_DIGITS} digits") from error
    if short and not MIN_MAGNITUDE <= short.adjusted() <= MAX_MAGNITUDE:
        raise BadValue(f"{short} is outside 1E{MIN_MAGNITUDE} to 9.9E+{MAX_MAGNITUDE}")
    whole = short == short.to_integral_value() and short.adjusted() < MAX_DIGITS
    return int(short) if whole else short


def copied(item: Item) -> dict[str, Value]:
    """A deep copy of attributes that are in stored form already."""
    return {name: _copied(value) for name, value in item.items()}


def size_of(item: Item) -> int:
    """About how many bytes the attributes take, by DynamoDB's published way of counting."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _storable(path: str, value: object) -> Value:
    match value:
        case None | bool():
            return value
        case str():
            return _text(path, value)
        case int() | Decimal():
            return number(value)
        case Mapping():
            return {_name(path, k): _storable(f"{path}.{k}", v) for k, v in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [_storable(f"{path}[{i}]", entry) for i, entry in enumerate(value)]
        case _:
            raise TypeError(f"attribute {path!r} is a {type(value).__name__}, which is not stored")


def _name(path: str, name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"attribute {path!r} has a key that is not text: {name!r}")
    return _text(path, name)


def _text(path: str, text: str) -> str:
    if type(text) is str and text.isascii():
        return text
    try:
        return text.encode().decode()
    except UnicodeEncodeError as error:
        raise BadValue(f"attribute {path!r} holds half a surrogate pair") from error


def _copied(value: Value) -> Value:
    match value:
        case dict():
            return copied(value)
        case list():
            return [_copied(entry) for entry in value]
        case _:
            return value


def _size(value: Value) -> int:
    match value:
        case None | bool():
            return 1
        case str():
            return len(value) if value.isascii() else len(value.encode())
        case int():
            return len(str(abs(value)).rstrip("0")) // 2 + 2
        case Decimal():
            return len(Decimal(value).as_tuple().digits) // 2 + 2
        case Mapping():
            return 3 + sum(1 + len(k.encode()) + _size(v) for k, v in value.items())
        case _:
            return 3 + sum(1 + _size(entry) for entry in value)
