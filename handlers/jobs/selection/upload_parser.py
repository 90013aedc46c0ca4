"""Record ids out of an uploaded file, streamed: JSON Lines or CSV, plain or gzip, UTF-8.

Memory holds one block and one line, whatever the file's size and whatever it claims to be. A file
is read to its last byte or refused with the line that is wrong; nothing in it is guessed or
skipped but empty lines, which are bounded: they are work without an id.
"""

from __future__ import annotations

import codecs
import csv
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ..words.errors import FairlaneError
from ..words.exact_json import NotJson, json_loads
from ..words.limits import MAX_ID_BYTES, MAX_LINE_BYTES
from ..words.text_rules import text_problem
from ..words.upload import Format, UploadForm

STEP: Final = 256 * 1024
"""Bytes decompressed at a time."""
SHOWN: Final = 60
"""Characters of the client's text that a message shows."""
LINES_PER_LOOK: Final = 5000
BYTES_PER_LOOK: Final = 4 * 1024 * 1024
"""The reader calls its caller's ``look`` at least that often, whatever the lines hold."""
MAX_BLANK_LINES: Final = 100_000
GZIP: Final = 16 + zlib.MAX_WBITS
GZIP_START: Final = b"\x1f\x8b"
NOT_CSV: Final = (
    "is not CSV: check the line ends, the quotes (a quote inside a quoted field is doubled) and "
    f"that no field has more than {csv.field_size_limit()} characters"
)
"""Fixed words, since the csv module's own differ from version to version."""


class BadUpload(FairlaneError):
    """An uploaded file can't be used as it is."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line
        """Counted from 1; 0 when it is not about one line."""


def parse_ids(
    blocks: Iterable[bytes],
    form: UploadForm,
    *,
    max_bytes: int,
    look: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """The ids of a file in their order, repeats included.

    max_bytes: the limit of the decompressed file. look: called every few thousand lines, and may
    raise to stop. Raises BadUpload, and whatever ``blocks`` and ``look`` raise.
    """
    lines = text_lines(blocks, form, max_bytes=max_bytes, look=look)
    if form.format is Format.CSV:
        return _csv_ids(lines, form.column or "")
    return _jsonl_ids(lines, form.column)


def text_lines(
    blocks: Iterable[bytes],
    form: UploadForm,
    *,
    max_bytes: int,
    look: Callable[[], None] = lambda: None,
) -> TextLines:
    """The decompressed lines of a file; see ``parse_ids``."""
    content = _expanded(blocks, max_bytes) if form.gzip else _bounded(blocks, max_bytes)
    return TextLines(content, look)


# --- bytes ------------------------------------------------------------------------------------


def _bounded(blocks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for block in blocks:
        size += len(block)
        if size > max_bytes:
            raise BadUpload(0, f"the file is larger than {max_bytes} bytes")
        yield block


def _expanded(blocks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """The content of a gzip file of one or more members, in bounded steps."""
    return _bounded(_Members().content(blocks), max_bytes)


class _Members:
    """The content of the members of a gzip file, in steps."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._head = b""
        """What came after the last member: too short to tell what it is."""
        self._read = self._ended = 0
        """Bytes of the file read so far, and at the end of the last member."""

    def content(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Raises BadUpload."""
        for block in blocks:
            self._read += len(block)
            yield from self._block(block)
        begun = not self._ended and GZIP_START.startswith(self._head) and self._read > 0
        if self._member is not None or begun:
            raise BadUpload(0, "the gzip file is cut short")
        if self._head:
            raise _no_gzip(self._ended, self._head)

    def _block(self, waiting: bytes) -> Iterator[bytes]:
        while waiting or self._member is not None:
            if self._member is None:
                waiting = self._begin(waiting)
            if self._member is None:
                return
            out = _decompressed(self._member, waiting)
            if out:
                yield out
            if self._member.eof:
                waiting = self._member.unused_data
                self._member, self._ended = None, self._read - len(waiting)
                continue
            waiting = self._member.unconsumed_tail
            # Only after a full step can there be more inside than the input shows.
            if not waiting and len(out) < STEP:
                return

    def _begin(self, waiting: bytes) -> bytes:
        """Begin a member if this is one; returns what it begins with."""
        self._head += waiting
        if len(self._head) < len(GZIP_START):
            return b""
        if not self._head.startswith(GZIP_START):
            raise _no_gzip(self._ended, self._head)
        whole, self._head = self._head, b""
        self._member = zlib.decompressobj(GZIP)
        return whole


def _decompressed(member: zlib._Decompress, waiting: bytes) -> bytes:
    try:
        return member.decompress(waiting, STEP)
    except zlib.error as error:
        raise BadUpload(0, "the file is not readable as gzip") from error


def _no_gzip(ended: int, head: bytes) -> BadUpload:
    """ended: bytes of good gzip data before."""
    if not ended:
        return BadUpload(0, "the file is not gzip, though its upload says so")
    more = "bytes that are no gzip" if head[0] else "zeros, as padding leaves them"
    return BadUpload(
        0, f"the gzip data ends after {ended} bytes, and {more} follow: cut the file there"
    )


class TextLines:
    """Text lines with their ends, cut at "\\n" only; ``number`` is that of the newest."""

    def __init__(self, blocks: Iterable[bytes], look: Callable[[], None]) -> None:
        self._blocks = blocks
        self._look = look
        self._lines_since = self._bytes_since = 0
        self.number = 0
        self.record_bytes = 0
        """Bytes since the reader began a record; the reader sets it back."""
        self._blank = 0

    def blank(self) -> None:
        """The newest line holds nothing. Raises BadUpload after too many."""
        self._blank += 1
        if self._blank > MAX_BLANK_LINES:
            raise BadUpload(self.number, f"the file has more than {MAX_BLANK_LINES} blank lines")

    def __iter__(self) -> Iterator[str]:
        rest = b""
        for block in self._blocks:
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield self._text(line + b"\n")
            self._check(self.number + 1, len(rest))
        if rest:
            yield self._text(rest)

    def _text(self, line: bytes) -> str:
        self.number += 1
        self.record_bytes += len(line)
        self._check(self.number, 0)
        self._look_around(len(line))
        if self.number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise BadUpload(self.number, "is not UTF-8") from error

    def _look_around(self, size: int) -> None:
        self._lines_since += 1
        self._bytes_since += size
        if self._lines_since >= LINES_PER_LOOK or self._bytes_since >= BYTES_PER_LOOK:
            self._lines_since = self._bytes_since = 0
            self._look()

    def _check(self, number: int, more: int) -> None:
        if self.record_bytes + more > MAX_LINE_BYTES:
            raise BadUpload(number, f"is longer than {MAX_LINE_BYTES} bytes")


# --- JSON Lines -------------------------------------------------------------------------------


class _RepeatedField(NotJson):
    pass


def _jsonl_ids(lines: TextLines, column: str | None) -> Iterator[str]:
    for line in lines:
        lines.record_bytes = 0
        if line.isspace():
            lines.blank()
            continue
        yield _checked(lines.number, _json_id(lines.number, line, column))


def _json_id(number: int, line: str, column: str | None) -> object:
    try:
        value = json_loads(line, object_pairs_hook=_object, parse_int=_Number, parse_float=_Number)
    except _RepeatedField as error:
        raise BadUpload(number, str(error)) from error
    except NotJson as error:
        raise BadUpload(number, f"is not JSON: {error}") from error
    if column is None:
        if isinstance(value, dict):
            raise BadUpload(
                number, "is an object; name the field that holds the id as the 'column'"
            )
        return value
    if not isinstance(value, dict):
        raise BadUpload(number, f"is {_kind(value)}, not an object with the field {column!r}")
    if column not in value:
        raise BadUpload(number, f"has no field {column!r}")
    return value[column]


class _Number(str):
    """A JSON number as it was written; never an id."""

    __slots__ = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RepeatedField("an object names one field twice")
    return found


def _kind(value: object) -> str:
    match value:
        case _Number():
            return f"the number {value[:SHOWN]}"
        case None:
            return "null"
        case bool():
            return "a boolean"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "a string"


def _checked(number: int, value: object) -> str:
    if isinstance(value, _Number) or not isinstance(value, str):
        raise BadUpload(number, f'the id is {_kind(value)}; ids are strings, such as "007"')
    if problem := text_problem(value, MAX_ID_BYTES):
        raise BadUpload(number, f"the id {problem}")
    return value


# --- CSV --------------------------------------------------------------------------------------


def _csv_ids(lines: TextLines, column: str) -> Iterator[str]:
    at: int | None = None
    for row in csv_rows(lines):
        if at is None:
            at = _column(lines.number, row, column)
        else:
            yield _checked(lines.number, row[at])
    if at is None:
        raise BadUpload(0, "the file has no header line")


def csv_rows(lines: TextLines) -> Iterator[list[str]]:
    """The rows that are not blank, the header first; all have its width. Raises BadUpload."""
    rows = csv.reader(iter(lines), strict=True)
    width: int | None = None
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise BadUpload(lines.number, NOT_CSV) from error
        lines.record_bytes = 0
        if row is None:
            break
        if not row:
            lines.blank()
            continue
        if width is not None and len(row) != width:
            raise BadUpload(lines.number, f"has {len(row)} fields, the header names {width}")
        width = len(row)
        yield row


def _column(number: int, row: list[str], column: str) -> int:
    """The index of the ids' column."""
    found = row.count(column)
    if found == 1:
        return row.index(column)
    if found:
        raise BadUpload(number, f"names the column {column!r} {found} times")
    names = ", ".join(name[:SHOWN] for name in row[:20])
    raise BadUpload(number, f"names no column {column!r}; there are: {names}")
