"""Effect rows of a running job, as a worker or a run of recovery has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.effects.rows import claim_effect
from handlers.jobs.effects.run import effect_of_item, effect_row
from handlers.jobs.storage import control_table
from handlers.jobs.words.effect import Effect
from handlers.jobs.words.writes import Index, Update
from handlers.testing.world import memory_world
from tests.support.jobs import begin, fill, new_job

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item
    from handlers.testing.world import MemoryWorld

OPEN: Final[Item] = {"effects_open": 2}


def with_effect(job: Item = OPEN, **row: Any) -> tuple[MemoryWorld, Effect]:
    """A running job with an effect row. job, row: attributes of the two items."""
    world = memory_world()
    made = begin(world, new_job(world, fill(world, 3)))
    effect = Effect(made.id, 0, made.tenant, made.operation, "small", {"r0000": 2}, {"index": None})
    put = effect_row(world, effect)
    world.store.transact("load", [replace(put, item={**put.item, **row})])
    world.store.transact("load", [Update(control_table.job_key(made.id), set=job)])
    return world, effect


def claimed(job: Item = OPEN, **row: Any) -> tuple[MemoryWorld, Effect]:
    """The same, claimed by a run of recovery."""
    world, effect = with_effect(job, **row)
    key = control_table.effect_key(effect.job_id, 0)
    item = world.store.get(key) or {}
    return world, claim_effect(world, effect_of_item(item), int(str(item[Index.DUE.sk])))


def row_of(world: MemoryWorld, effect: Effect) -> Item | None:
    return world.store.get(control_table.effect_key(effect.job_id, effect.position))
