"""How a team's record table names what Fairlane needs, and the two writes made from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from .operation import Record
from .writes import AnyOf, Delete, Differs, Equals, Key, Missing, Present, Table, Update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .writes import Item, Value, When

UNUSABLE: Final = -1
"""The version of a record whose version attribute is not a whole number: no condition on it ever
holds, so the record ends as a failed item and its neighbours go on."""


class ReservedField(ValueError):
    """An operation tried to write a key, the version or the job mark of a record."""


@dataclass(frozen=True)
class RecordSchema:
    """The attribute names of the record table."""

    tenant: str = "tenant"
    id: str = "id"
    version: str = "version"
    last_job_id: str = "last_job_id"

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Attributes no operation may write."""
        return frozenset({self.tenant, self.id, self.version, self.last_job_id})

    def record(self, tenant: str, record_id: str, item: Item) -> Record:
        """The record in an item. A record Fairlane never touched may have no version: 0."""
        version = item.get(self.version, 0)
        mark = item.get(self.last_job_id)
        return Record(
            tenant=tenant,
            id=record_id,
            version=version if type(version) is int else UNUSABLE,
            fields={name: value for name, value in item.items() if name not in self.reserved},
            last_job_id=mark if isinstance(mark, str) else None,
        )

    def change(self, record: Record, fields: Mapping[str, Value], job_id: str) -> Update:
        """See ``RecordStore.change``. Raises ReservedField."""
        if taken := self.reserved & fields.keys():
            raise ReservedField(f"reserved field: {', '.join(sorted(taken))}")
        kept = {name: value for name, value in fields.items() if value is not None}
        return Update(
            self._key(record),
            set={**kept, self.version: record.version + 1, self.last_job_id: job_id},
            remove=tuple(name for name, value in fields.items() if value is None),
            when=self._untouched(record, job_id),
        )

    def remove(self, record: Record, job_id: str) -> Delete:
        """See ``RecordStore.remove``."""
        return Delete(self._key(record), when=self._untouched(record, job_id))

    def _key(self, record: Record) -> Key:
        return Key(record.tenant, record.id, Table.RECORDS)

    def _untouched(self, record: Record, job_id: str) -> When:
        """Closes two races: another writer since the read, and this job's own earlier commit."""
        unmarked = Differs(self.last_job_id, job_id)
        if record.version != 0:
            return (Equals(self.version, record.version), unmarked)
        # Without a version, "unchanged" would also hold for a record deleted since the read.
        no_version = AnyOf((Missing(self.version), Equals(self.version, 0)))
        return (Present(self.id), no_version, unmarked)
