"""The results of single records: those that failed or were skipped, and those a sink refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.transaction import retry_transient
from ..words.errors import FairlaneError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..words.job import Job
    from ..words.ports import World
    from ..words.writes import Cursor, Found, Value

ROWS: Final = 25
"""Rows of one read; each holds the outcomes of at most one chunk."""
MAX_ROWS: Final = 500
"""Rows one page looks through; then it ends, also when it has found little or nothing."""


class Unfinished(FairlaneError):
    """The time was not enough to read all of them."""


class ItemOutcome(StrEnum):
    """The outcomes that can be listed. Records changed as asked are not written down one by one."""

    FAILED = "failed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    """Changed, but a sink will not take it."""


ROW_PREFIXES: Final = {
    ItemOutcome.FAILED: (control_table.MIXED_ROW, control_table.OUTCOME_ROWS["failed"]),
    ItemOutcome.SKIPPED: (control_table.MIXED_ROW, control_table.OUTCOME_ROWS["skipped"]),
    ItemOutcome.REFUSED: (control_table.REFUSED_ROW,),
}
"""Where the results of an outcome are, in the order of a list. A worker of version 0.1.0 may have
done the first part of a job."""
_AFTER_PREFIX: Final = re.compile(r"[0-9]{12}(#[0-9]{4})?", re.ASCII)


def is_row(outcome: ItemOutcome, sk: str) -> bool:
    """Whether it can be the sort key of a row with results of the outcome."""
    return any(
        sk.startswith(prefix) and _AFTER_PREFIX.fullmatch(sk.removeprefix(prefix))
        for prefix in ROW_PREFIXES[outcome]
    )


@dataclass(frozen=True)
class ItemResult:
    id: str
    outcome: ItemOutcome
    reason: str
    sink: str | None = None
    """The sink that refused the record; None for the other outcomes."""


@dataclass(frozen=True)
class Mark:
    """A place in a list: after so many results of the rows that come after a row."""

    row: str | None = None
    """The sort key of that row; None: the start."""
    taken: int = 0


@dataclass(frozen=True)
class Results:
    """A page."""

    found: Sequence[ItemResult]
    next: Mark | None
    """Where the list goes on; None at its end."""


def item_page(
    world: World, job: Job, outcome: ItemOutcome, mark: Mark, *, limit: int, max_bytes: int
) -> Results:
    """At most ``limit`` results, whose ids and reasons take at most ``max_bytes`` as UTF-8; at
    least one if there is one. Raises Transient."""
    found: list[ItemResult] = []
    size = rows = 0
    for at, result in _marked(world, job, outcome, mark):
        if result is None:
            rows += 1
            if rows == MAX_ROWS:
                return Results(found, at)
            continue
        size += len(result.id.encode()) + len(result.reason.encode())
        if len(found) == limit or (found and size > max_bytes):
            return Results(found, at)
        found.append(result)
    return Results(found, None)


def item_results(
    world: World, job: Job, outcome: ItemOutcome, out_of_time: Callable[[], bool]
) -> Iterator[ItemResult]:
    """All results as of when the job was read, in the order of their chunks; memory holds a few
    rows. out_of_time: called after each row, also one without such results. Raises Unfinished,
    Transient."""
    for _, result in _marked(world, job, outcome, Mark()):
        if result is not None:
            yield result
        elif out_of_time():
            raise Unfinished


def _marked(
    world: World, job: Job, outcome: ItemOutcome, mark: Mark
) -> Iterator[tuple[Mark, ItemResult | None]]:
    """Each result with the mark that begins with it, and None after each row with the mark that
    begins after that row."""
    row, skip = mark.row, mark.taken
    for found in _rows(world, job, outcome, row):
        listed = found.item.get(outcome.value)
        for number, entry in enumerate(listed if isinstance(listed, list) else ()):
            if number >= skip:
                yield Mark(row, number), _result(entry, outcome)
        row, skip = found.key.sk, 0
        yield Mark(row), None


def _rows(world: World, job: Job, outcome: ItemOutcome, after: str | None) -> Iterator[Found]:
    """The rows with results of the outcome, and those that may have some."""
    if outcome is not ItemOutcome.REFUSED and getattr(job, outcome.value) == 0:
        return
    for prefix in ROW_PREFIXES[outcome]:
        if after is None or after.startswith(prefix):
            yield from _rows_under(world, job, prefix, after)
            after = None


def _rows_under(world: World, job: Job, prefix: str, after: str | None) -> Iterator[Found]:
    pk = control_table.job_key(job.id).pk
    end = None if prefix == control_table.REFUSED_ROW else f"{prefix}{job.position:012}"
    cursor: Cursor | None = None if after is None else {"pk": pk, "sk": after}
    while True:
        part = retry_transient(
            world,
            partial(world.store.query_partition, pk, sk_prefix=prefix, limit=ROWS, after=cursor),
        )
        for found in part.found:
            if end is not None and found.key.sk >= end:
                return  # committed since the job was read
            yield found
        if part.next is None:
            return
        cursor = part.next


def _result(entry: Value, outcome: ItemOutcome) -> ItemResult:
    if not isinstance(entry, dict):
        return ItemResult("", outcome, "its row cannot be read")
    sink = entry.get("sink")
    return ItemResult(
        str(entry.get("id", "")),
        outcome,
        str(entry.get("reason", "")),
        None if sink is None else str(sink),
    )
