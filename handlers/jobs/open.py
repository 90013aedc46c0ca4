"""How much is open in the outbox, for those who watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import items
from .errors import Transient
from .measures import Measure
from .store import Index

if TYPE_CHECKING:
    from .ports import World

MOST: Final = 500
"""Rows of one shard that are counted: each count is paid for like a read of the rows."""
LATER: Final = 2**53
"""After every time there is (ms)."""
OPEN: Final = {
    items.DISPATCH: Measure.DISPATCHES_OPEN,
    items.EFFECT: Measure.EFFECTS_OPEN,
    items.PARKED: Measure.EFFECTS_WAITING,
    items.EVENT: Measure.EVENTS_OPEN,
}


def measure_open(world: World) -> None:
    """Count what is open, due or not. Never raises."""
    try:
        for kind, measure in OPEN.items():
            world.telemetry.count(measure, _count(world, kind))
    except Transient as error:
        world.telemetry.log("open_not_counted", why=str(error))


def _count(world: World, kind: str) -> int:
    return sum(
        world.store.count(Index.DUE, items.due_partition(kind, shard), before=LATER, at_most=MOST)
        for shard in range(world.due_shards)
    )
