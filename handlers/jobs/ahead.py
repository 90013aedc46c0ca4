"""The next chunk is read and planned while the last one commits: two of a chunk's three waits
are for the database, and neither needs the other's result.

What was read ahead may be stale by its commit. That is no new case: the commit's conditions refuse
what changed since it was read, whoever changed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .model import IdCursor
    from .planning import Plan
    from .ports import Task, World
    from .sources import Part


@dataclass(frozen=True)
class Chunk:
    """Some ids of the source, and what is to happen to their records."""

    part: Part
    plans: Mapping[str, Plan]


class ReadAhead:
    """Chunks by cursor, at most one of them ahead, in a thread that ends with it."""

    def __init__(self, world: World, read: Callable[[IdCursor], Chunk]) -> None:
        self._world = world
        self._read = read
        self._cursor: IdCursor | None = None
        self._task: Task | None = None
        self._chunk: Chunk | None = None
        self._error: BaseException | None = None

    def start(self, cursor: IdCursor) -> None:
        """Begin to read the chunk at the cursor."""
        self.close()
        self._cursor, self._chunk, self._error = cursor, None, None
        self._task = self._world.runtime.spawn("read-ahead", self._run)

    def take(self, cursor: IdCursor) -> Chunk:
        """The chunk at the cursor. Raises what reading it raised."""
        self.close()
        if self._cursor != cursor or (self._chunk is None and self._error is None):
            return self._read(cursor)
        self._cursor = None
        if self._error is not None:
            raise self._error
        assert self._chunk is not None
        return self._chunk

    def close(self) -> None:
        """Returns when nothing is being read."""
        if self._task is not None:
            self._task.join()
            self._task = None

    def _run(self) -> None:
        assert self._cursor is not None
        try:
            self._chunk = self._read(self._cursor)
        except BaseException as error:  # noqa: BLE001  raised again where it is taken
            self._error = error
