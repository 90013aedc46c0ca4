"""A stream of ids without repeats, in the order in which the list is walked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from .dedupe import DistinctIds, private_table
from .walk_order import place_of

READ: Final = 1000
"""Ids that are read at once when the order is known."""


class PermutedIds:
    """The ids of a stream without their repeats, in the order of the seed, in bounded memory. The
    first one comes when the stream has ended."""

    def __init__(self, ids: Iterable[str], seed: str) -> None:
        self._ids = ids
        self._seed = seed
        self.total = 0
        """Distinct ids, when all are taken."""
        self.duplicates = 0
        self._read = 0

    def __iter__(self) -> Iterator[str]:
        columns = "place INTEGER, id TEXT, PRIMARY KEY (place, id)"
        with closing(private_table(columns)) as table:
            self._take(table)
            chosen = table.execute("SELECT id FROM seen ORDER BY place, id")
            while rows := chosen.fetchmany(READ):
                for (id_,) in rows:
                    yield id_

    def _take(self, table: sqlite3.Connection) -> None:
        insert = "INSERT OR IGNORE INTO seen VALUES (?, ?)"
        self.total = table.executemany(insert, self._rows()).rowcount
        self.duplicates = self._read - self.total

    def _rows(self) -> Iterator[tuple[int, str]]:
        self._read = 0
        for id_ in self._ids:
            self._read += 1
            yield place_of(id_, self._seed), id_


def distinct(ids: Iterable[str], seed: str, *, permute: bool) -> DistinctIds | PermutedIds:
    """A stream's ids without their repeats, in the order of the seed or in their own."""
    return PermutedIds(ids, seed) if permute else DistinctIds(ids)
