"""Rows of a lookup table out of an uploaded file, JSON Lines or CSV: each has a key of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from ..words.exact_json import NotJson, exact_loads
from ..words.limits import MAX_ID_BYTES
from ..words.stored_values import BadValue, number
from ..words.table import Row
from ..words.text_rules import text_problem
from ..words.upload import Format, UploadForm
from .upload_parser import SHOWN, BadUpload, TextLines, csv_rows, text_lines

NO_COLUMN: Final = "the upload names no 'column', which is the key of a table's rows"


def parse_rows(
    blocks: Iterable[bytes], form: UploadForm, *, max_bytes: int
) -> Iterator[tuple[str, Row]]:
    """Key and row of each line, in their order; no key comes twice.

    max_bytes: the limit of the decompressed file. Raises BadUpload, and whatever ``blocks`` raises.
    """
    if form.column is None:
        raise BadUpload(0, NO_COLUMN)
    lines = text_lines(blocks, form, max_bytes=max_bytes)
    rows = _csv_rows(lines) if form.format is Format.CSV else _jsonl_rows(lines)
    seen: dict[str, int] = {}
    for row in rows:
        key = _key(lines.number, row, form.column)
        if key in seen:
            raise BadUpload(
                lines.number, f"has the key {key[:SHOWN]!r} of line {seen[key]} once more"
            )
        seen[key] = lines.number
        yield key, row
    if not seen:
        raise BadUpload(0, "the table has no row")


def _key(line: int, row: Row, column: str) -> str:
    if column not in row:
        names = ", ".join(name[:SHOWN] for name in list(row)[:20])
        raise BadUpload(line, f"has no field {column!r}, the key; there are: {names}")
    key = row[column]
    if not isinstance(key, str):
        raise BadUpload(line, f"the key {column!r} is no text")
    if problem := text_problem(key, MAX_ID_BYTES):
        raise BadUpload(line, f"the key {problem}")
    return key


def _jsonl_rows(lines: TextLines) -> Iterator[Row]:
    for line in lines:
        lines.record_bytes = 0
        if line.isspace():
            lines.blank()
            continue
        try:
            found: Any = exact_loads(line)
        except NotJson as error:
            raise BadUpload(lines.number, f"is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise BadUpload(lines.number, "is not an object")
        yield {name: _cell(lines.number, name, value) for name, value in found.items()}


def _cell(line: int, name: str, value: object) -> Any:
    """Flat, so that a row can be shared by everybody and changed by nobody."""
    match value:
        case None | bool() | str():
            return value
        case int() | Decimal():
            try:
                return number(value)
            except BadValue as error:
                raise BadUpload(line, f"{name[:SHOWN]!r}: {error}") from error
        case _:
            raise BadUpload(line, f"{name[:SHOWN]!r} is a list or an object; a row is flat")


def _csv_rows(lines: TextLines) -> Iterator[Row]:
    """Every cell is text."""
    names: list[str] | None = None
    for row in csv_rows(lines):
        if names is None:
            names = row
            if (twice := _repeated(names)) is not None:
                raise BadUpload(lines.number, f"names the column {twice[:SHOWN]!r} twice")
        else:
            yield dict(zip(names, row, strict=True))


def _repeated(names: Sequence[str]) -> str | None:
    """In one pass: a line has room for hundreds of thousands of names."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
