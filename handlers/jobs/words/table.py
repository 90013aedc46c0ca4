"""A lookup table among an operation's parameters: rows by a key, from an uploaded file.

A client names the upload; ``selection.tables`` reads it once, at the job's creation, and keeps what
it read under the hash of it. So every attempt of the job sees the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from .errors import FairlaneError
from .upload import UPLOAD_ID

Cell: TypeAlias = str | int | Decimal | bool | None
Row: TypeAlias = Mapping[str, Cell]

TABLES: Final = "tables"
"""The validation context's name for a ``Reader``."""
SAYS: Final = (
    "A lookup table: the id of an uploaded file whose `column` has the key of each row. The job "
    "keeps the rows as they were when it was created."
)


class TableNotRead(FairlaneError):
    """Code looked into a table that has not been read: only the operation's function can."""

    def told(self, what: str) -> str:
        """What is wrong with an operation, to who uses it. what: its part that looked."""
        return (
            f"{what} looks into a lookup table, which is read for the operation's function alone: "
            "its author has to look there"
        )


class Table(Mapping[str, Row]):
    """Rows by the text in their key's column. A parameter of this type is
    ``{"upload_id": "…"}`` in a request, and cannot be changed."""

    def __init__(self, rows: Mapping[str, Row] | None) -> None:
        """None: it has not been read."""
        self._rows = (
            None if rows is None else {key: MappingProxyType(row) for key, row in rows.items()}
        )

    def __getitem__(self, key: str) -> Row:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return "Table(not read)" if self._rows is None else f"Table({len(self._rows)} rows)"

    def _read(self) -> Mapping[str, Row]:
        if self._rows is None:
            raise TableNotRead("a table is read only for the operation's function")
        return self._rows

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        upload_id = core_schema.str_schema(pattern=UPLOAD_ID, strict=True)
        named = core_schema.typed_dict_schema(
            {"upload_id": core_schema.typed_dict_field(upload_id, required=True)},
            extra_behavior="forbid",
            metadata={"pydantic_js_updates": {"title": "Table", "description": SAYS}},
        )
        return core_schema.with_info_after_validator_function(_of, named)


Reader: TypeAlias = Callable[[str], Table]
"""(upload id) -> the table. Raises ValueError for what the request's client has to mend."""


def _of(named: Mapping[str, str], info: core_schema.ValidationInfo) -> Table:
    read: Reader | None = (info.context or {}).get(TABLES)
    return Table(None) if read is None else read(named["upload_id"])


class TableCache:
    """The tables that this process read last, by name, up to a number of bytes as stored."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, Table]] = {}
        self._lock = Lock()

    def get(self, name: str) -> Table | None:
        with self._lock:
            found = self._held.pop(name, None)
            if found is None:
                return None
            self._held[name] = found  # the newest is the last to go
            return found[1]

    def put(self, name: str, table: Table, size: int, *, most: int) -> None:
        """Keep a table. The least recently used ones go until the rest has at most ``most`` bytes;
        the new one stays, whatever its size."""
        with self._lock:
            self._held.pop(name, None)
            self._held[name] = (size, table)
            held = sum(each for each, _ in self._held.values())
            while held > most and len(self._held) > 1:
                oldest = next(iter(self._held))
                held -= self._held.pop(oldest)[0]
