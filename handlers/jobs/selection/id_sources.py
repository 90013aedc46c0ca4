"""The ids of a job in order, from where its cursor stands: inline, stored, uploaded or queried."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ..storage.transaction import retry_transient
from ..words.errors import JobFailed, PayloadGone, Transient, UploadGone
from ..words.job import EndReason
from ..words.limits import PAYLOAD_BLOCK, QUERY_PAGE
from .upload_parser import parse_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..words.filters import Filter
    from ..words.job import IdCursor, Job
    from ..words.ports import PayloadStore, RecordQuery, UploadStore, World
    from ..words.upload import Upload

_as_json: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Entry:
    id: str
    cursor: IdCursor
    """The cursor that goes on after this record."""


@dataclass(frozen=True)
class Part:
    """The next entries of a source, in their order."""

    entries: Sequence[Entry]
    next: IdCursor | None
    """The cursor to go on with; None at the end. A part may be empty while there is more: a source
    stops looking after a while, so that its caller can be stopped."""


class Source(Protocol):
    def after(self, cursor: IdCursor, limit: int) -> Part:
        """The next entries, at most ``limit``. Raises Transient, JobFailed."""


def source_of(world: World, job: Job) -> Source:
    """The id source of the job. Raises JobFailed when this deployment can't walk such a job."""
    if job.payload is not None:
        return StoredIds(world.payloads, job.payload)
    if job.ids is None and job.query is not None:
        return QueriedIds(query_port(world), job.tenant, filter_of(job.query))
    return InlineIds(job.ids or ())


def query_port(world: World) -> RecordQuery:
    if world.query is None:
        raise JobFailed(EndReason.BAD_QUERY, "this deployment takes no queries")
    return world.query


def filter_of(query: str) -> Filter:
    from ..words.filters import Filter  # noqa: PLC0415  slow to import, and few jobs have a query

    try:
        return Filter.from_json(query)
    except ValueError as error:
        raise JobFailed(EndReason.BAD_QUERY, str(error)) from error


@dataclass(frozen=True)
class InlineIds:
    """Ids kept in the job item; the cursor is an index."""

    ids: Sequence[str]

    def after(self, cursor: IdCursor, limit: int) -> Part:
        start = _number(cursor)
        part = self.ids[start : start + limit]
        entries = [Entry(id_, start + index) for index, id_ in enumerate(part, start=1)]
        end = start + len(part)
        return Part(entries, end if end < len(self.ids) else None)


class StoredIds:
    """Ids in the payload store, one JSON string a line; the cursor is a byte offset.

    Reads whole blocks and keeps one, so a chunk rarely costs a read of its own and memory does not
    grow with the list.
    """

    def __init__(self, payloads: PayloadStore, name: str, block: int = PAYLOAD_BLOCK) -> None:
        self._payloads = payloads
        self._name = name
        self._block = block
        self._start = 0
        self._bytes = b""
        self._ended = False

    def after(self, cursor: IdCursor, limit: int) -> Part:
        at = _number(cursor)
        entries: list[Entry] = []
        while len(entries) < limit:
            line = self._line(at)
            if not line:
                return Part(entries, None)
            at += len(line)
            entries.append(Entry(json.loads(line), at))
        return Part(entries, at)

    def _line(self, offset: int) -> bytes:
        """The line at the offset with its newline; b"" at the end of the list."""
        at = offset - self._start
        if not 0 <= at <= len(self._bytes):
            self._start, self._bytes, self._ended, at = offset, b"", False, 0
        while (end := self._bytes.find(b"\n", at)) < 0:
            if self._ended:
                return self._bytes[at:]
            self._bytes = self._bytes[at:]
            self._start, at = offset, 0
            self._more()
        return self._bytes[at : end + 1]

    def _more(self) -> None:
        try:
            block = self._payloads.read(self._name, self._start + len(self._bytes), self._block)
        except PayloadGone as error:
            raise JobFailed(EndReason.PAYLOAD_GONE, "the job's stored id list is gone") from error
        self._bytes += block
        self._ended = not block


class QueriedIds:
    """The records a query selects, in the source's own order; the cursor is the source's.

    Reads large pages and hands out small parts: what a page says may be old by then, and a record
    is checked against the filter when it is read anyway.
    """

    def __init__(self, query: RecordQuery, tenant: str, filter_: Filter) -> None:
        self._query = query
        self._tenant = tenant
        self._filter = filter_
        self._waiting: list[Entry] = []
        self._at: IdCursor = 0
        """The cursor the waiting entries come after."""
        self._next: IdCursor | None = 0

    def after(self, cursor: IdCursor, limit: int) -> Part:
        if cursor != self._at:
            self._waiting, self._at, self._next = [], cursor, cursor
        if not self._waiting and self._next is not None:
            self._read(self._next)
        entries, self._waiting = self._waiting[:limit], self._waiting[limit:]
        if entries:
            self._at = entries[-1].cursor
        elif self._next is not None:
            self._at = self._next
        return Part(entries, self._at if self._waiting or self._next is not None else None)

    def _read(self, cursor: IdCursor) -> None:
        after = cursor if isinstance(cursor, str) else None
        page = self._query.page(self._tenant, self._filter, after, QUERY_PAGE)
        self._waiting = [Entry(found.id, found.cursor) for found in page.found]
        if self._waiting and page.next is not None:
            # The next page goes on after the last record looked through, not after the last match.
            self._waiting[-1] = Entry(self._waiting[-1].id, page.next)
        self._next = page.next


def _number(cursor: IdCursor) -> int:
    if isinstance(cursor, str):
        raise JobFailed(
            EndReason.UNDECODABLE, "the job's cursor belongs to another kind of id source"
        )
    return cursor


def lines(ids: Iterable[str], block: int = PAYLOAD_BLOCK) -> Iterator[bytes]:
    """The stored form of an id list, in blocks of about the given size."""
    waiting: list[bytes] = []
    size = 0
    for id_ in ids:
        line = _as_json(id_).encode() + b"\n"
        waiting.append(line)
        size += len(line)
        if size >= block:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def upload_ids(
    world: World, upload: Upload, look: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """The ids in an uploaded file, repeats included.

    look: called before each block and every few thousand lines; it may raise to stop. Raises
    BadUpload, JobFailed (it is gone), Transient.
    """
    return parse_ids(
        upload_blocks(world, upload, look),
        upload,
        max_bytes=world.limits.max_expanded_bytes,
        look=look,
    )


def first_block(world: World, upload: Upload) -> bytes:
    """A file of at most one block, whole. One call. Raises JobFailed (it is gone), Transient."""
    return _read(_upload_store(world), upload, 0)


def upload_blocks(
    world: World, upload: Upload, look: Callable[[], None] = lambda: None
) -> Iterator[bytes]:
    """The file as it is stored. look: called before each block. Raises JobFailed (it is gone),
    Transient."""
    uploads = _upload_store(world)
    for offset in range(0, upload.size, PAYLOAD_BLOCK):
        look()
        yield retry_transient(world, partial(_read, uploads, upload, offset))


def _upload_store(world: World) -> UploadStore:
    if world.uploads is None:
        raise JobFailed(EndReason.UPLOAD_GONE, "this deployment takes no uploads")
    return world.uploads


def _read(uploads: UploadStore, upload: Upload, offset: int) -> bytes:
    try:
        block = uploads.read(upload.name, upload.version, offset, PAYLOAD_BLOCK)
    except UploadGone as error:
        raise JobFailed(EndReason.UPLOAD_GONE, str(error)) from error
    if len(block) != min(PAYLOAD_BLOCK, upload.size - offset):
        raise Transient(f"{len(block)} bytes of the upload from {offset}")
    return block
