"""Where the ids of a job come from. A source is walked by a cursor and keeps no other state that
matters, so any worker can go on from a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .errors import JobFailed, PayloadGone
from .limits import PAYLOAD_BLOCK
from .model import EndReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .model import Job
    from .ports import PayloadStore, World


@dataclass(frozen=True)
class Entry:
    id: str
    cursor: int
    """The cursor that goes on after this record."""


class Source(Protocol):
    def after(self, cursor: int, limit: int) -> Sequence[Entry]:
        """The next entries, at most ``limit``; empty at the end. Raises Transient, JobFailed."""


def source_of(world: World, job: Job) -> Source:
    if job.payload is not None:
        return StoredIds(world.payloads, job.payload)
    return InlineIds(job.ids or ())


@dataclass(frozen=True)
class InlineIds:
    """Ids kept in the job item; the cursor is an index."""

    ids: Sequence[str]

    def after(self, cursor: int, limit: int) -> Sequence[Entry]:
        part = self.ids[cursor : cursor + limit]
        return [Entry(id_, cursor + index) for index, id_ in enumerate(part, start=1)]


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

    def after(self, cursor: int, limit: int) -> Sequence[Entry]:
        entries: list[Entry] = []
        while len(entries) < limit:
            line = self._line(cursor)
            if not line:
                break
            cursor += len(line)
            entries.append(Entry(json.loads(line), cursor))
        return entries

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
            raise JobFailed(EndReason.PAYLOAD_GONE, "its stored id list is gone") from error
        self._bytes += block
        self._ended = not block


def lines(ids: Iterable[str], block: int = PAYLOAD_BLOCK) -> Iterator[bytes]:
    """The stored form of an id list, in blocks of about the given size."""
    waiting: list[bytes] = []
    size = 0
    for id_ in ids:
        line = json.dumps(id_, ensure_ascii=False).encode() + b"\n"
        waiting.append(line)
        size += len(line)
        if size >= block:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
