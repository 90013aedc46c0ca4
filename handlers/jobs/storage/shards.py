"""The number of due-index shards that recovery looks at: as many as the deployment ever had.

A row stays in the shard it was written to, also when the deployment has fewer shards later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..words.errors import OutcomeUnknown, Refused, Transient
from ..words.writes import AnyOf, Below, Missing, Update
from . import control_table
from .transaction import retry_transient

if TYPE_CHECKING:
    from ..words.ports import World

MOST_SHARDS: Final = "most"


def with_all_shards(world: World) -> World:
    """The world with the most shards that recovery has noted. Raises Transient."""
    return replace(world, due_shards=max(world.due_shards, _noted(world)))


def recording_shards(world: World) -> World:
    """The same for a run of recovery, which also notes its deployment's number. Never raises: the
    next run notes what this one could not."""
    try:
        noted = _noted(world)
        if noted < world.due_shards:
            _note(world)
    except (Transient, OutcomeUnknown, Refused) as error:
        world.telemetry.log("shards_not_noted", why=str(error))
        return world
    return replace(world, due_shards=max(world.due_shards, noted))


def _noted(world: World) -> int:
    item = retry_transient(world, lambda: world.store.get(control_table.SHARDS)) or {}
    return int(str(item.get(MOST_SHARDS, 0)))


def _note(world: World) -> None:
    """Closes: two runs at once, of a deployment before and after its number was changed."""
    fewer = AnyOf((Missing(MOST_SHARDS), Below(MOST_SHARDS, world.due_shards)))
    note = Update(control_table.SHARDS, set={MOST_SHARDS: world.due_shards}, when=(fewer,))
    world.store.transact("note_shards", [note])
