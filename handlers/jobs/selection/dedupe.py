"""Dropping repeats over any number of ids, exactly, in bounded memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

CACHE_KIB: Final = 16 * 1024
"""Memory for pages of the set; what is over it lies in a private temporary file."""


class DistinctIds:
    """The ids of a stream without their repeats, each at its first place."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = ids
        self.total = 0
        """Distinct ids given out so far."""
        self.duplicates = 0

    def __iter__(self) -> Iterator[str]:
        # A database without a name is private, and gone with its connection.
        with closing(sqlite3.connect("", isolation_level=None)) as seen:
            seen.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            seen.execute("PRAGMA journal_mode = OFF")
            seen.execute("PRAGMA synchronous = OFF")
            seen.execute("CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")
            seen.execute("BEGIN")
            insert = "INSERT OR IGNORE INTO seen VALUES (?)"
            for id_ in self._ids:
                if seen.execute(insert, (id_,)).rowcount:
                    self.total += 1
                    yield id_
                else:
                    self.duplicates += 1
