"""Effects that are not done: who asks for them, and how the parked ones are run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import control, effect_rows, effects, items, undone
from .settle import Rejected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .control import Answer
    from .effects import Effect
    from .ports import World
    from .store import Found

MAX_REPLAYED: Final = 500
"""Chunks one request puts back to work: within the time of an API call. Ask again for the rest."""


@dataclass(frozen=True)
class Undone:
    """An effect row."""

    effect: Effect
    error: str
    since: int
    """See ``undone``."""


def replay(world: World, tenant: str, job_id: str) -> Answer:
    """Let recovery run the job's parked effects again, from their first try. Raises Transient."""
    job = control.find(world, tenant, job_id)
    if job is None:
        return control.NoSuchJob()
    replayed = 0
    for each in of_job(world, job_id):
        if replayed == MAX_REPLAYED:
            break
        if each.effect.parked:
            replayed += unpark(world, each.effect)
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
    return map(_undone, undone.of_job(world, job_id, items.EFFECT_PREFIX))


def of_all(world: World) -> Iterator[Undone]:
    """Everybody's open and parked effects, a moment behind. Raises Transient."""
    return map(_undone, undone.of_kinds(world, items.PARKED, items.EFFECT))


def _undone(found: Found) -> Undone:
    return Undone(effects.effect_from(found.item), undone.error_of(found), undone.since(found))
