"""What became of single records: the failed and skipped ones of a job, and those a sink refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from . import items
from .errors import FairlaneError
from .settle import insist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .model import Job
    from .ports import World
    from .store import Cursor, Found, Value

ROWS: Final = 25
"""Rows of one read; each holds the outcomes of at most one chunk."""
MAX_ROWS: Final = 500
"""Rows one page looks through; then it ends, also when it has found little or nothing."""


class Unfinished(FairlaneError):
    """The time was not enough to read all of them."""


class Outcome(StrEnum):
    """What can be listed. The others were changed as asked; nobody writes them down."""

    FAILED = "failed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    """Changed, but a sink will not take it."""


@dataclass(frozen=True)
class Result:
    id: str
    outcome: Outcome
    reason: str
    sink: str | None = None
    """Of a refused one: who refused it."""


@dataclass(frozen=True)
class Mark:
    """A place in a list: after so many results of the rows that come after a row."""

    row: str | None = None
    """The sort key of that row; None: the start."""
    taken: int = 0


@dataclass(frozen=True)
class Results:
    """A page."""

    found: Sequence[Result]
    next: Mark | None
    """Where the list goes on; None at its end."""


def page(
    world: World, job: Job, outcome: Outcome, mark: Mark, *, limit: int, max_bytes: int
) -> Results:
    """At most ``limit`` results, and no more than take ``max_bytes`` as UTF-8 without what is
    around them; at least one if there is one. Raises Transient."""
    found: list[Result] = []
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


def results(
    world: World, job: Job, outcome: Outcome, out_of_time: Callable[[], bool]
) -> Iterator[Result]:
    """All of them, as of when the job was read, in the order they were settled; a few rows in
    memory. out_of_time: asked after each row, which may hold none of them. Raises Unfinished,
    Transient."""
    for _, result in _marked(world, job, outcome, Mark()):
        if result is not None:
            yield result
        elif out_of_time():
            raise Unfinished


def _marked(
    world: World, job: Job, outcome: Outcome, mark: Mark
) -> Iterator[tuple[Mark, Result | None]]:
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


def _rows(world: World, job: Job, outcome: Outcome, after: str | None) -> Iterator[Found]:
    pk = items.job_key(job.id).pk
    prefix = items.REFUSED_ROW if outcome is Outcome.REFUSED else items.OUTCOME_ROW
    end = items.outcome_key(job.id, job.position).sk
    cursor: Cursor | None = None if after is None else {"pk": pk, "sk": after}
    while True:
        part = insist(
            world,
            partial(world.store.query_partition, pk, sk_prefix=prefix, limit=ROWS, after=cursor),
        )
        for found in part.found:
            if outcome is not Outcome.REFUSED and found.key.sk >= end:
                return  # settled since the job was read
            yield found
        if part.next is None:
            return
        cursor = part.next


def _result(entry: Value, outcome: Outcome) -> Result:
    if not isinstance(entry, dict):
        return Result("", outcome, "its row cannot be read")
    sink = entry.get("sink")
    return Result(
        str(entry.get("id", "")),
        outcome,
        str(entry.get("reason", "")),
        None if sink is None else str(sink),
    )
