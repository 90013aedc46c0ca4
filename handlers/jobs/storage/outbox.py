"""The rows of the outbox that are still open: of one job, or of all jobs by kind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ..words.writes import Index
from . import control_table
from .transaction import retry_transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..words.ports import World
    from ..words.writes import Cursor, Found, Page

PAGE: Final = 100


def rows_of_job(world: World, job_id: str, prefix: str) -> Iterator[Found]:
    """The job's rows whose sort key begins like this, in its order. Raises Transient."""
    yield from _all(world, partial(_page_of_job, world, control_table.job_key(job_id).pk, prefix))


def rows_of_kinds(world: World, *kinds: str) -> Iterator[Found]:
    """Everybody's rows of these kinds, a moment behind. Raises Transient."""
    for kind in kinds:
        for shard in range(world.due_shards):
            yield from _all(
                world, partial(_page_of_kind, world, control_table.due_partition(kind, shard))
            )


def error_of(found: Found) -> str:
    """Of its last try; empty before the first has failed."""
    return str(found.item.get("last_error", ""))


def since(found: Found) -> int:
    """When it is tried next, or was parked (epoch ms)."""
    at = found.item.get(Index.DUE.sk)
    return at if isinstance(at, int) else 0


def _page_of_job(world: World, pk: str, prefix: str, after: Cursor | None) -> Page:
    return world.store.query_partition(pk, sk_prefix=prefix, limit=PAGE, after=after)


def _page_of_kind(world: World, partition: str, after: Cursor | None) -> Page:
    return world.store.query(Index.DUE, partition, limit=PAGE, after=after)


def _all(world: World, ask: Callable[[Cursor | None], Page]) -> Iterator[Found]:
    after: Cursor | None = None
    while True:
        page = retry_transient(world, partial(ask, after))
        yield from page.found
        after = page.next
        if after is None:
            return
