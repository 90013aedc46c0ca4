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
        with closing(private_table("id TEXT PRIMARY KEY")) as seen:
            insert = "INSERT OR IGNORE INTO seen VALUES (?)"
            for id_ in self._ids:
                if seen.execute(insert, (id_,)).rowcount:
                    self.total += 1
                    yield id_
                else:
                    self.duplicates += 1


def private_table(columns: str) -> sqlite3.Connection:
    """A table ``seen`` with these columns, in a database that is gone with its connection."""
    table = sqlite3.connect("", isolation_level=None)  # without a name: private
    table.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    table.execute("PRAGMA journal_mode = OFF")
    table.execute("PRAGMA synchronous = OFF")
    table.execute(f"CREATE TABLE seen ({columns}) WITHOUT ROWID")
    table.execute("BEGIN")
    return table
