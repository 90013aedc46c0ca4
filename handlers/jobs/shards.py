"""How many shards of the index there are to look at: as many as the deployment ever had. Rows stay
in the shard they were written to, also when a deployment has fewer from then on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from . import items
from .errors import OutcomeUnknown, Refused, Transient
from .settle import insist
from .store import AnyOf, Below, Missing, Update

if TYPE_CHECKING:
    from .ports import World

MOST: Final = "most"


def with_every_shard(world: World) -> World:
    """The world with the most shards that recovery has noted. Raises Transient."""
    return replace(world, due_shards=max(world.due_shards, _noted(world)))


def noting_shards(world: World) -> World:
    """The same for a run of recovery, which notes how many its deployment has. Never raises: what
    cannot be read or written now is the next run's."""
    try:
        noted = _noted(world)
        if noted < world.due_shards:
            _note(world)
    except (Transient, OutcomeUnknown, Refused) as error:
        world.telemetry.log("shards_not_noted", why=str(error))
        return world
    return replace(world, due_shards=max(world.due_shards, noted))


def _noted(world: World) -> int:
    item = insist(world, lambda: world.store.get(items.SHARDS)) or {}
    return int(str(item.get(MOST, 0)))


def _note(world: World) -> None:
    """Closes: two runs at once, of a deployment before and after its number was changed."""
    fewer = AnyOf((Missing(MOST), Below(MOST, world.due_shards)))
    note = Update(items.SHARDS, set={MOST: world.due_shards}, when=(fewer,))
    world.store.transact("note_shards", [note])
