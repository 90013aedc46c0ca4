"""Was every record changed exactly once by every job? Asked of the table itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pydantic import BaseModel, ConfigDict

from .ledger import JobRow, RecordRow
from .plan import FIELD, Planned

SHOWN: Final = 5

Key = tuple[str, str]
"""Tenant and record id."""


class Truth(BaseModel):
    """The table compared with what the jobs' checkpoints say."""

    model_config = ConfigDict(frozen=True)

    records: int
    """All that were compared, also those no job was to touch."""
    changed: int
    """Those at least one job changed."""
    changes: int
    """Changes in all: a record that two jobs list is changed twice."""
    wrong: int
    examples: tuple[str, ...]
    """Of the wrong ones."""


@dataclass(frozen=True)
class Ran:
    """A planned job, and what became of it."""

    planned: Planned
    row: JobRow

    @property
    def settled(self) -> tuple[str, ...]:
        """The records it has worked through. They come in the order of the request."""
        return self.planned.ids[: self.row.position]


def compare(
    before: Mapping[Key, RecordRow], ran: Iterable[Ran], after: Mapping[Key, RecordRow]
) -> Truth:
    """Each record must have one version and one addition more for every job that settled it, and
    carry the mark of one of these jobs; nothing else may have changed."""
    by: dict[Key, list[Ran]] = defaultdict(list)
    for job in ran:
        for record_id in job.settled:
            by[job.planned.tenant, record_id].append(job)
    wrong = [
        f"{'/'.join(key)}: {why}"
        for key in sorted(before.keys() | after.keys() | by.keys())
        if (why := _difference(before.get(key), by.get(key, []), after.get(key)))
    ]
    return Truth(
        records=len(before),
        changed=len(by),
        changes=sum(map(len, by.values())),
        wrong=len(wrong),
        examples=tuple(wrong[:SHOWN]),
    )


def _difference(before: RecordRow | None, by: list[Ran], after: RecordRow | None) -> str | None:
    if before is None or after is None:
        return "it was not there before" if before is None else "it is gone"
    version = before.version + len(by)
    if after.version != version:
        return f"version {after.version}, expected {version}"
    marks: set[str | None] = {job.row.id for job in by}
    if after.last_job_id not in (marks or {before.last_job_id}):
        return f"marked by job {after.last_job_id}, which did not list it"
    expected = {**_data(before), FIELD: _number(before) + sum(job.planned.adds for job in by)}
    found = {**_data(after), FIELD: _number(after)}
    if found != expected:
        names = [n for n in sorted(found.keys() | expected) if found.get(n) != expected.get(n)]
        return ", ".join(f"{n} is {found.get(n)}, expected {expected.get(n)}" for n in names)
    return None


def _data(record: RecordRow) -> dict[str, object]:
    return {
        name: value
        for name, value in record.fields.items()
        if name not in ("version", "last_job_id")
    }


def _number(record: RecordRow) -> Decimal:
    value = record.fields[FIELD]
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"{FIELD} is {value!r}")
    return Decimal(value)
