"""The team's records in memory, in the same store, so that one transaction spans both tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..jobs.words.record_schema import RecordSchema
from ..jobs.words.writes import Key, Put, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..jobs.words.operation import Record
    from ..jobs.words.writes import Item, Value, Write
    from .job_store import MemoryStore

MAX_READ: Final = 100


class MemoryRecordStore:
    """``RecordStore`` over the record table of a MemoryStore made with the same schema."""

    def __init__(self, store: MemoryStore, schema: RecordSchema | None = None) -> None:
        self._store = store
        self._schema = schema or RecordSchema()

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        if len(set(ids)) > MAX_READ:
            raise ValueError(f"{len(set(ids))} ids in one read, not at most {MAX_READ}")
        keys = [Key(tenant, record_id, Table.RECORDS) for record_id in dict.fromkeys(ids)]
        found = self._store.get_many(keys)
        return {key.sk: self._schema.record(tenant, key.sk, item) for key, item in found.items()}

    def change(self, record: Record, fields: Mapping[str, Value], job_id: str) -> Write:
        return self._schema.change(record, fields, job_id)

    def remove(self, record: Record, job_id: str) -> Write:
        return self._schema.remove(record, job_id)

    def load(self, tenant: str, records: Mapping[str, Item]) -> None:
        """Put records as the team would: attributes by id, with a version only if given one."""
        for record_id, item in records.items():
            self._store.transact("load", [Put(Key(tenant, record_id, Table.RECORDS), item)])
