"""Record ids of a local file: JSON Lines or CSV, plain or gzip, or one plain id a line.

What an uploaded file means is for the API to say. This reads a file in the same way, so that its
ids can be sent in the request as long as they have room there; a test compares the two.
"""

from __future__ import annotations

import csv
import gzip
import json
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from .requests import MAX_ID_BYTES, NewUpload
from .words import UploadFormat

FORMATS: Final = {
    ".csv": UploadFormat.CSV,
    ".jsonl": UploadFormat.JSONL,
    ".ndjson": UploadFormat.JSONL,
}
SHOWN: Final = 60
"""Characters of a file's own text in a message."""


class BadFile(Exception):
    """A file of ids cannot be used as it is."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}" if line else message)


def ids_of(path: Path, form: NewUpload | None) -> Iterator[str]:
    """The ids in their order, repeats included. form: None for one plain id a line.
    Raises BadFile, OSError."""
    opened = gzip.open if form is not None and form.gzip else open
    try:
        with opened(path, "rb") as file:
            lines = _Lines(file)
            if form is None:
                yield from _plain(lines)
            elif form.format == UploadFormat.CSV:
                yield from _csv(lines, form.column or "")
            else:
                yield from _jsonl(lines, form.column)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadFile(0, f"the file is not readable as gzip: {error}") from error


def bad_id(text: str) -> str | None:
    """What is wrong with an id; None when nothing is."""
    if not text:
        return "must not be empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "must not hold half of a surrogate pair"
    if size > MAX_ID_BYTES:
        return f"is {size} bytes as UTF-8, at most {MAX_ID_BYTES} are allowed"
    if not text.isprintable() and any(unicodedata.category(c) == "Cc" for c in text):
        return "must not hold control characters"
    return None


class _Lines:
    """Text lines with their ends, cut at "\\n" only; ``number`` is that of the newest."""

    def __init__(self, file: Iterable[bytes] | IO[bytes]) -> None:
        self._file = file
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.number += 1
            try:
                yield line.decode("utf-8-sig" if self.number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise BadFile(self.number, f"is not UTF-8: {error}") from error


def _checked(number: int, value: object) -> str:
    if isinstance(value, _Number) or not isinstance(value, str):
        raise BadFile(number, f'the id is {_kind(value)}; ids are strings, such as "007"')
    if problem := bad_id(value):
        raise BadFile(number, f"the id {problem}")
    return value


def _plain(lines: _Lines) -> Iterator[str]:
    for line in lines:
        if text := line.rstrip("\r\n"):
            yield _checked(lines.number, text)


# --- JSON Lines -------------------------------------------------------------------------------


class _Number(str):
    """A JSON number as it was written; never an id."""

    __slots__ = ()


class _Twice(ValueError):
    pass


def _jsonl(lines: _Lines, column: str | None) -> Iterator[str]:
    for line in lines:
        if not line.isspace():
            yield _checked(lines.number, _json_id(lines.number, line, column))


def _json_id(number: int, line: str, column: str | None) -> object:
    try:
        value = json.loads(line, object_pairs_hook=_object, parse_int=_Number, parse_float=_Number)
    except _Twice as error:
        raise BadFile(number, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(number, f"is not JSON: {error}") from error
    if column is None:
        if isinstance(value, dict):
            raise BadFile(number, "is an object; name the field that holds the id as the column")
        return value
    if not isinstance(value, dict):
        raise BadFile(number, f"is {_kind(value)}, not an object with the field {column!r}")
    if column not in value:
        raise BadFile(number, f"has no field {column!r}")
    return value[column]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice("an object names one field twice")
    return found


def _kind(value: object) -> str:
    if isinstance(value, _Number):
        return f"the number {value[:SHOWN]}"
    names = {type(None): "null", bool: "a boolean", list: "a list", dict: "an object"}
    return names.get(type(value), "a string")


# --- CSV --------------------------------------------------------------------------------------


def _csv(lines: _Lines, column: str) -> Iterator[str]:
    rows = csv.reader(iter(lines), strict=True)
    header: list[str] | None = None
    at = 0
    try:
        for row in rows:
            if not row:
                continue
            if header is None:
                header, at = row, _column(lines.number, row, column)
            elif len(row) != len(header):
                fields = f"has {len(row)} fields, the header names {len(header)}"
                raise BadFile(lines.number, fields)
            else:
                yield _checked(lines.number, row[at])
    except csv.Error as error:
        raise BadFile(lines.number, f"is not CSV: {error}") from error
    if header is None:
        raise BadFile(0, "the file has no header line")


def _column(number: int, header: list[str], column: str) -> int:
    found = header.count(column)
    if found == 1:
        return header.index(column)
    if found:
        raise BadFile(number, f"names the column {column!r} {found} times")
    names = ", ".join(name[:SHOWN] for name in header[:20])
    raise BadFile(number, f"names no column {column!r}; there are: {names}")
