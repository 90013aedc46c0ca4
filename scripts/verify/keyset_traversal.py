"""A query's records are walked exactly once while the set shrinks, on a real search node. The
controls: paging by offset, and an operation that writes the field the walk is sorted by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from handlers.aws.search_query import SearchQuery
from handlers.jobs.selection import id_sources, resolve
from handlers.jobs.selection.request import Unprocessable
from handlers.jobs.words.filters import Filter
from handlers.jobs.words.limits import QUERY_PAGE, Limits
from handlers.jobs.words.ports import Count, Match, Matches
from handlers.jobs.words.states import State

from .framework import Bench, Expectation, Scenario
from .indexed import ORDER, SCHEMA, Indexed, Refresh, Walked, node

CHUNK: Final = 20
"""Records of a chunk, and of a page, so that a small set has many of both."""
SMALL: Final = Limits(chunk_size=CHUNK, look_calls=0)
"""A worker walks each set: creation does not look whether it is a small one."""
BOUNDARIES: Final = (1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 1, 3 * CHUNK, 3 * CHUNK + 1)
LARGE: Final = (QUERY_PAGE - 1, QUERY_PAGE, QUERY_PAGE + 1, 2 * QUERY_PAGE + 5)
"""With pages and chunks as they ship."""
LONG: Final = 50 * CHUNK + 1
SHIFT: Final = 100_000

BOOKS: Final = {"all": [{"field": "kind", "op": "eq", "value": "book"}]}
DELETING: Final = {"operation": "delete_records", "subject": "books", "query": BOOKS}
MOVING: Final = {
    "operation": "adjust_number",
    "subject": "books",
    "params": {"field": ORDER, "add": SHIFT},
    "query": {"all": [*BOOKS["all"], {"field": ORDER, "op": "exists", "value": True}]},
}
"""Adds to the very field the walk is sorted by, so that each record moves to its end."""


def run(bench: Bench) -> Iterator[Expectation]:
    with node(bench) as here:
        for refresh in (Refresh.EVERY_PAGE, Refresh.NEVER):
            with bench.steps.step(f"Deleting what a query finds; the index shows it {refresh}"):
                yield once(here, refresh, BOUNDARIES, SMALL, CHUNK)
        with bench.steps.step("The same with pages as they ship"):
            yield once(here, Refresh.EVERY_PAGE, LARGE, Limits(look_calls=0), QUERY_PAGE)
        with bench.steps.step("The same while the index shows it every second"):
            yield once(here, Refresh.AS_IT_COMES, (LONG,), SMALL, CHUNK)
        with bench.steps.step("An operation that writes the sort field"):
            yield from guarded(here)


def control(bench: Bench) -> Iterator[Expectation]:
    with node(bench) as here, patch.object(id_sources, "QUERY_PAGE", CHUNK):
        with bench.steps.step("Deleting by offset"):
            yield from by_offset(here)
        with bench.steps.step("Writing the sort field without the guard"):
            yield from unguarded(here)


SCENARIO: Final = Scenario(
    "keyset-traversal",
    "Each record of a query is met exactly once while the set shrinks.",
    run,
    control,
)


# --- the run ----------------------------------------------------------------------------------


def once(
    here: str, refresh: Refresh, counts: tuple[int, ...], limits: Limits, page: int
) -> Expectation:
    """For each number of records: a new index, and a job that deletes them all."""
    wrong: dict[int, str] = {}
    with patch.object(id_sources, "QUERY_PAGE", page):
        for count in counts:
            name = f"once-{page}-{count}-{refresh.name.lower()}"
            walked = Indexed(here, name, count, refresh=refresh, limits=limits).walk(DELETING)
            if problem := different(walked, count, shown(refresh, count, page)):
                wrong[count] = problem
    sizes = ", ".join(map(str, counts))
    return Expectation.equal(
        f"sets of {sizes}, pages of {page}, index refreshed {refresh}: records not met, deleted "
        "and gone from the index exactly once",
        expected={},
        saw=wrong,
    )


def shown(refresh: Refresh, count: int, page: int) -> tuple[int, ...] | None:
    """Records the index has to show at each page of a set that shrinks by a page each time."""
    pages = count // page + 1
    match refresh:
        case Refresh.EVERY_PAGE:
            return tuple(count - page * number for number in range(pages))
        case Refresh.NEVER:
            return (count,) * pages
    return None


def different(walked: Walked, count: int, shows: tuple[int, ...] | None) -> str:
    """What is not as it has to be after all of so many records were deleted; "" for nothing.

    shows: what the index has to have shown at each page; None: whatever it did.
    """
    job = walked.job
    seen = {
        "state": (job.state, State.SUCCEEDED),
        "counts": ((job.succeeded, job.failed, job.skipped), (count, 0, 0)),
        "total": (job.total, count),
        "met": (len(walked.met), count),
        "met most often": (max(walked.met.values(), default=0), min(count, 1)),
        "deleted": (len(walked.changed), count),
        "deleted most often": (max(walked.changed.values(), default=0), min(count, 1)),
        "left": (walked.left, 0),
        "left in the index": (walked.left_in_index, 0),
        "shown at each page": (walked.seen if shows is not None else None, shows),
    }
    return ", ".join(f"{what}: {saw}" for what, (saw, wanted) in seen.items() if saw != wanted)


def guarded(here: str) -> Iterator[Expectation]:
    count = 5 * CHUNK
    indexed = Indexed(here, "guarded", count, refresh=Refresh.EVERY_PAGE, limits=SMALL)
    try:
        indexed.walk({**MOVING, "traversal": "live"})
        refused: object = "taken"
    except Unprocessable as error:
        refused = sorted(error.names)
    yield Expectation.equal(
        "asked to walk live while writing the sort field: refused for these fields",
        expected=[ORDER],
        saw=refused,
    )
    with patch.object(id_sources, "QUERY_PAGE", CHUNK):
        walked = indexed.walk(MOVING)
    sorted_ = count - count // CHUNK * (CHUNK // 5)
    yield Expectation.equal(
        "left to choose: traversal, records changed, most often one was",
        expected=("snapshot", sorted_, 1),
        saw=(
            str(walked.job.traversal),
            len(walked.changed),
            max(walked.changed.values(), default=0),
        ),
    )


# --- the controls -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _ByOffset:
    """``RecordQuery`` on the same index by the number of the first record, as pages are often
    asked for. Everything else is the real adapter's."""

    search: SearchQuery

    @property
    def sorts(self) -> frozenset[str]:
        return self.search.sorts

    @property
    def searchable(self) -> frozenset[str] | None:
        return self.search.searchable

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        start = 0 if cursor is None else int(json.loads(cursor))
        body: dict[str, Any] = {
            "query": self.search._query(tenant, filter_),  # noqa: SLF001  the same query
            "sort": self.search._sort(),  # noqa: SLF001
            "from": start,
            "size": limit,
        }
        hits = self.search.client.search(body=body, index=self.search.index)["hits"]["hits"]
        found = [
            Match(str(hit["_source"][SCHEMA.id]), json.dumps(start + at))
            for at, hit in enumerate(hits, start=1)
        ]
        return Matches(found, found[-1].cursor if len(found) == limit else None)

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        return self.search.count(tenant, filter_, at_most)


def by_offset(here: str) -> Iterator[Expectation]:
    count = 10 * CHUNK
    indexed = Indexed(here, "offset", count, refresh=Refresh.EVERY_PAGE, limits=SMALL)
    walked = indexed.walk(DELETING, query=_ByOffset(indexed.search))
    yield Expectation.of(
        f"records of {count} that a walk by offset lost, in a job that says it succeeded",
        expected=f"at least {CHUNK}, {State.SUCCEEDED}",
        saw=f"{walked.left}, {walked.job.state}",
        ok=walked.left >= CHUNK and walked.job.state is State.SUCCEEDED,
    )


def unguarded(here: str) -> Iterator[Expectation]:
    count = 10 * CHUNK
    indexed = Indexed(here, "unguarded", count, refresh=Refresh.EVERY_PAGE, limits=SMALL)
    with patch.object(resolve, "_written", lambda _world, _request: frozenset()):
        walked = indexed.walk({**MOVING, "traversal": "live"})
    repeated = sum(times > 1 for times in walked.met.values())
    yield Expectation.of(
        f"records of {len(walked.met)} that a live walk met again after it had moved them",
        expected="at least 1",
        saw=repeated,
        ok=repeated > 0,
    )
    yield Expectation.of(
        "so that its counts are not those of the set",
        expected=f"a total other than {len(walked.met)}",
        saw=walked.job.total,
        ok=walked.job.total != len(walked.met),
    )
