"""Backlog metrics: how many rows of the outbox are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..words.errors import Transient
from ..words.metrics import Metric
from ..words.writes import Index
from . import control_table

if TYPE_CHECKING:
    from ..words.ports import World

MAX_COUNTED: Final = 500
"""Rows of one shard that are counted: each count is paid for like a read of the rows."""
LATER: Final = 2**53
"""A time (ms) after every due time."""
BACKLOG_METRICS: Final = {
    control_table.DISPATCH: Metric.DISPATCHES_OPEN,
    control_table.EFFECT: Metric.EFFECTS_OPEN,
    control_table.PARKED: Metric.EFFECTS_WAITING,
    control_table.EVENT: Metric.EVENTS_OPEN,
}


def report_backlog(world: World) -> None:
    """Count what is open, due or not. Never raises."""
    try:
        for kind, metric in BACKLOG_METRICS.items():
            world.telemetry.count(metric, _count(world, kind))
    except Transient as error:
        world.telemetry.log("open_not_counted", why=str(error))


def _count(world: World, kind: str) -> int:
    return sum(
        world.store.count(
            Index.DUE, control_table.due_partition(kind, shard), before=LATER, at_most=MAX_COUNTED
        )
        for shard in range(world.due_shards)
    )
