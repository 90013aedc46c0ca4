"""Effects that are not done: who asks for them, and how the parked ones are run again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from . import control, effect_rows, effects, items
from .settle import Rejected, insist
from .store import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .control import Answer
    from .effects import Effect
    from .ports import World
    from .store import Cursor, Found, Page

PAGE: Final = 100
MAX_REPLAYED: Final = 500
"""Chunks one request puts back to work: within the time of an API call. Ask again for the rest."""


@dataclass(frozen=True)
class Undone:
    """An effect row."""

    effect: Effect
    error: str
    """Of its last try; empty before the first has failed."""
    since: int
    """When it is tried next, or was parked (epoch ms)."""


def replay(world: World, tenant: str, job_id: str) -> Answer:
    """Let recovery run the job's parked effects again, from their first try. Raises Transient."""
    job = control.find(world, tenant, job_id)
    if job is None:
        return control.NoSuchJob()
    replayed = 0
    for undone in of_job(world, job_id):
        if replayed == MAX_REPLAYED:
            break
        if undone.effect.parked:
            replayed += unpark(world, undone.effect)
    if not replayed:
        return control.NotPossible(job, "none of its effects is parked")
    return control.find(world, tenant, job_id) or control.NoSuchJob()


def unpark(world: World, effect: Effect) -> bool:
    """False when somebody else did. Raises Transient."""
    try:
        effect_rows.unpark(world, effect)
    except Rejected:
        return False
    world.telemetry.log(
        "effect_replayed", job_id=effect.job_id, tenant=effect.tenant, position=effect.position
    )
    return True


def of_job(world: World, job_id: str) -> Iterator[Undone]:
    """The job's open and parked effects in the order of their chunks. Raises Transient."""
    yield from _all(world, partial(_page_of_job, world, items.job_key(job_id).pk))


def of_all(world: World) -> Iterator[Undone]:
    """Everybody's open and parked effects, a moment behind. Raises Transient."""
    for kind in (items.PARKED, items.EFFECT):
        for shard in range(world.due_shards):
            yield from _all(world, partial(_page_of_kind, world, items.due_partition(kind, shard)))


def _page_of_job(world: World, pk: str, after: Cursor | None) -> Page:
    return world.store.query_partition(pk, sk_prefix=items.EFFECT_PREFIX, limit=PAGE, after=after)


def _page_of_kind(world: World, partition: str, after: Cursor | None) -> Page:
    return world.store.query(Index.DUE, partition, limit=PAGE, after=after)


def _all(world: World, ask: Callable[[Cursor | None], Page]) -> Iterator[Undone]:
    after: Cursor | None = None
    while True:
        page = insist(world, partial(ask, after))
        yield from map(_undone, page.found)
        after = page.next
        if after is None:
            return


def _undone(found: Found) -> Undone:
    since = found.item.get(Index.DUE.sk)
    return Undone(
        effects.effect_from(found.item),
        str(found.item.get("last_error", "")),
        since if isinstance(since, int) else 0,
    )
