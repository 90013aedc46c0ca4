"""The next chunks are read and planned while one commits: two of a chunk's three waits are for the
database, and neither needs the other's result.

Records read ahead may be stale by their commit. That is no new case: the commit's conditions refuse
every record that changed since it was read.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..selection.id_sources import Part
    from ..words.job import IdCursor
    from ..words.operation import Plan
    from ..words.ports import Task, World

DEPTH: Final = 2
"""Chunks ahead. One is not enough: a database that serves a worker's calls one after another
answers the read after the commit before it, and the next commit would wait for its plan."""


@dataclass(frozen=True)
class Chunk:
    """Some ids of the source, and the plans for their records."""

    part: Part
    plans: Mapping[str, Plan]


class Prefetch:
    """Chunks by cursor. The next ``DEPTH`` are read ahead, each in a thread of its own, but one
    after another: where a chunk begins is known only when the one before it was read."""

    def __init__(self, world: World, read: Callable[[IdCursor], Chunk]) -> None:
        self._world = world
        self._read = read
        self._cursor: IdCursor | None = None
        """Where the first chunk ahead begins."""
        self._ahead: deque[_Reading] = deque()

    def take(self, cursor: IdCursor) -> Chunk:
        """The chunk at the cursor; reading the ones after it begins. Raises what reading it
        raised."""
        if self._ahead and self._cursor == cursor:
            chunk = self._ahead.popleft().result()
        else:
            self.close()
            chunk = self._read(cursor)
        self._cursor = chunk.part.next
        if self._cursor is not None:
            self._fill(self._cursor)
        return chunk

    def close(self) -> None:
        """Begin no other read. Returns when nothing is being read."""
        for reading in self._ahead:
            reading.unwanted = True
        while self._ahead:
            self._ahead.popleft().join()

    def _fill(self, cursor: IdCursor) -> None:
        while len(self._ahead) < DEPTH:
            before = self._ahead[-1] if self._ahead else None
            reading = _Reading(self._read, cursor, before)
            reading.start(self._world)
            self._ahead.append(reading)


class _Reading:
    """A chunk that is being read in a thread."""

    def __init__(
        self, read: Callable[[IdCursor], Chunk], cursor: IdCursor, before: _Reading | None
    ) -> None:
        """before: the chunk this one follows; ``cursor`` is where it begins without one."""
        self._read = read
        self._cursor = cursor
        self._before = before
        self.unwanted = False
        self._task: Task | None = None
        self._chunk: Chunk | None = None
        self._error: BaseException | None = None

    def start(self, world: World) -> None:
        self._task = world.runtime.spawn("read-ahead", self._run)

    def join(self) -> None:
        assert self._task is not None
        self._task.join()

    def result(self) -> Chunk:
        """Raises what reading it raised, or the chunk before it did."""
        chunk = self._wait()
        assert chunk is not None
        return chunk

    def _wait(self) -> Chunk | None:
        """None when the chunk was not read: the source had ended, or the chunk is unwanted."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._chunk

    def _run(self) -> None:
        try:
            cursor: IdCursor | None = self._cursor
            if self._before is not None:
                before, self._before = self._before._wait(), None  # noqa: SLF001  its own kind
                cursor = before.part.next if before else None
            if cursor is not None and not self.unwanted:
                self._chunk = self._read(cursor)
        except BaseException as error:  # noqa: BLE001  raised again where it is taken
            self._error = error
