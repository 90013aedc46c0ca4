"""Queries in memory: over the records of a store, as they are, in the order of their ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..jobs.words.filters import matches
from ..jobs.words.ports import Count, Match, Matches
from ..jobs.words.record_schema import RecordSchema
from ..jobs.words.writes import Table

if TYPE_CHECKING:
    from ..jobs.words.filters import Filter
    from ..jobs.words.operation import Record
    from .job_store import MemoryStore


class MemoryRecordQuery:
    """``RecordQuery`` over the record table of a MemoryStore made with the same schema."""

    def __init__(
        self,
        store: MemoryStore,
        schema: RecordSchema | None = None,
        *,
        look_at: int | None = None,
    ) -> None:
        """look_at: records one page looks at, however few match; None: as many as it takes."""
        self._store = store
        self._schema = schema or RecordSchema()
        self._look_at = look_at

    @property
    def searchable(self) -> frozenset[str] | None:
        return None

    @property
    def sorts(self) -> frozenset[str]:
        return frozenset({self._schema.id})

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        after = "" if cursor is None else str(json.loads(cursor))
        records = [record for record in self._records(tenant) if record.id > after]
        found: list[Match] = []
        for looked, record in enumerate(records, start=1):
            at = json.dumps(record.id)
            if matches(filter_, record.fields):
                found.append(Match(record.id, at))
            if looked < len(records) and (len(found) == limit or looked == self._look_at):
                return Matches(found, at)
        return Matches(found, None)

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        number = sum(matches(filter_, record.fields) for record in self._records(tenant))
        return Count(min(number, at_most), exact=number <= at_most)

    def _records(self, tenant: str) -> list[Record]:
        items = self._store.snapshot(Table.RECORDS)
        records = [
            self._schema.record(tenant, key.sk, item)
            for key, item in items.items()
            if key.pk == tenant
        ]
        return sorted(records, key=lambda record: record.id)
