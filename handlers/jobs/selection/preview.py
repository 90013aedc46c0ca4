"""The preview of a job: what it would do, before it is created."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from ..storage.transaction import retry_transient
from ..words.errors import JobFailed, QueryRefused
from ..words.limits import MAX_CHUNK
from ..words.ports import Count
from ..words.stored_values import size_of
from .dedupe import DistinctIds
from .id_sources import upload_ids
from .request import Unprocessable
from .resolve import check_address, lane_for, select
from .table_uploads import fix_tables
from .upload_parser import BadUpload

if TYPE_CHECKING:
    from ..words.filters import Filter
    from ..words.job import Lane, Traversal
    from ..words.ports import World
    from ..words.upload import Upload
    from .request import Accepted
    from .resolve import Selection

SAMPLE: Final = 10
LOOKED_AT: Final = 1000
"""Lines of an uploaded file that a preview reads, however often an id comes again."""
LOOKS: Final = 8
"""Parts of a file that a preview reads, however few ids they hold: see ``BYTES_PER_LOOK``."""
PAGES: Final = 3
"""Pages of a query that a preview reads, however few records match."""
COUNT_UP_TO: Final = 10_000
CHUNK_SECONDS: Final = 0.2
"""The time that an estimate takes for reading, planning and committing one chunk."""
KIB: Final = 1024
JOB_BYTES: Final = 2 * KIB


@dataclass(frozen=True)
class Estimate:
    """The estimate of a run in which every record is changed."""

    seconds: int
    write_units: int
    """DynamoDB's write units: transactions cost two for each KB, and the checkpoint is written with
    every chunk. Indexes of the team's own table come on top."""


@dataclass(frozen=True)
class Preview:
    lane: Lane
    count: int | None
    """Records selected; None when only reading the whole file would tell."""
    exact: bool
    """False: there are that many or more."""
    duplicates: int
    sample: tuple[str, ...]
    traversal: Traversal | None
    why: str
    estimate: Estimate | None


def preview(world: World, tenant: str, request: Accepted) -> Preview:
    """The preview of a request; writes nothing. Raises Unprocessable, Transient."""
    check_address(world, request)
    selection = select(world, tenant, request)
    if request.tables:
        fix_tables(world, tenant, request, keep=False)
    try:
        count, sample = _looked_at(world, tenant, selection)
    except QueryRefused as error:
        raise Unprocessable("query", str(error)) from error
    except (BadUpload, JobFailed) as error:
        raise Unprocessable("upload_id", str(error)) from error
    number = None if count is None else count.number
    return Preview(
        lane=lane_for(selection.known, world.limits),
        count=number,
        exact=count is not None and count.exact,
        duplicates=request.duplicates + selection.duplicates,
        sample=sample,
        traversal=selection.traversal,
        why=selection.why,
        estimate=None if number is None else _estimate(world, tenant, number, sample),
    )


def _looked_at(
    world: World, tenant: str, selection: Selection
) -> tuple[Count | None, tuple[str, ...]]:
    if selection.ids is not None:
        return Count(len(selection.ids), exact=True), selection.ids[:SAMPLE]
    if selection.upload is not None:
        return None, _first_of_upload(world, selection.upload)
    query = selection.query
    assert query is not None, "a request has ids, a file or a query"
    return _count(world, tenant, query), _first_of_query(world, tenant, query)


class _Enough(Exception):
    """The preview has read as much of a file as it may."""


def _first_of_upload(world: World, upload: Upload) -> tuple[str, ...]:
    looks = iter(range(LOOKS))

    def look() -> None:
        if next(looks, None) is None:
            raise _Enough

    first = islice(upload_ids(world, upload, look), LOOKED_AT)
    sample: list[str] = []
    with suppress(_Enough):
        sample.extend(islice(DistinctIds(first), SAMPLE))
    return tuple(sample)


def _count(world: World, tenant: str, query: Filter) -> Count | None:
    port = world.query
    return (
        None
        if port is None
        else retry_transient(world, lambda: port.count(tenant, query, COUNT_UP_TO))
    )


def _first_of_query(world: World, tenant: str, query: Filter) -> tuple[str, ...]:
    port = world.query
    if port is None:
        return ()
    found: list[str] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = retry_transient(world, partial(port.page, tenant, query, cursor, SAMPLE))
        found += [each.id for each in page.found]
        cursor = page.next
        if cursor is None or len(found) >= SAMPLE:
            break
    return tuple(found[:SAMPLE])


def _estimate(world: World, tenant: str, count: int, sample: tuple[str, ...]) -> Estimate:
    found = retry_transient(world, lambda: world.records.read(tenant, sample)) if sample else {}
    sizes = [size_of(record.fields) for record in found.values()]
    each = 2 * _kilobytes(sum(sizes) // len(sizes) if sizes else KIB)
    chunks = -(-count // min(world.limits.chunk_size, MAX_CHUNK))
    # A chunk's other writes: the job and its index entry, the lease's check, the effect's row.
    checkpoint = 3 * _kilobytes(JOB_BYTES) + 2 + 2
    return Estimate(
        seconds=round(chunks * CHUNK_SECONDS), write_units=count * each + chunks * checkpoint
    )


def _kilobytes(size: int) -> int:
    return max(1, -(-size // KIB))
