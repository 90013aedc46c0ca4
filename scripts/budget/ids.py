"""Ids to build a request of: of one length, or like those of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Final

DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def of_length(length: int) -> Iterator[str]:
    """ASCII ids, no two the same as long as there are so many of the length."""
    for number in count():
        yield _number(number).rjust(length, "0")[-length:]


def like(sample: Sequence[str]) -> Iterator[str]:
    """The sample's ids, then variants of them that take as many bytes: another number at the end,
    where there are letters or digits to put one in."""
    yield from sample
    for number, id_ in enumerate(cycle(sample)):
        yield _varied(id_, _number(number))


def _varied(id_: str, number: str) -> str:
    replaced = id_[-len(number) :]
    if len(replaced) == len(number) and replaced.isascii() and replaced.isalnum():
        return id_[: -len(number)] + number
    return id_


def _number(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, len(DIGITS))
        text = DIGITS[digit] + text
        if not number:
            return text
