"""Effects that are not done: listing them, and running the parked ones again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..effects.rows import replay_effect
from ..effects.run import effect_of_item
from ..storage import control_table
from ..storage.outbox import error_of, rows_of_job, rows_of_kinds, since
from ..storage.transaction import Rejected, execute
from ..transitions.pause import note_request
from ..words.job import HistoryEntry, Verb
from . import control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..words.effect import Effect
    from ..words.ports import World
    from ..words.writes import Found
    from .control import Answer

MAX_REPLAYED: Final = 500
"""Chunks whose effects one request replays, within the time of an API call; another request
replays the rest."""


@dataclass(frozen=True)
class OpenEffect:
    """An effect row."""

    effect: Effect
    error: str
    since: int
    """See ``outbox.since``."""


def replay_effects(world: World, tenant: str, job_id: str, by: str = "") -> Answer:
    """Let recovery run the job's parked effects again, from their first try. by: the verified
    caller, for the job's history. Raises Transient."""
    job = control.find(world, tenant, job_id)
    if job is None:
        return control.NoSuchJob()
    replayed = 0
    for each in open_effects_of_job(world, job_id):
        if replayed == MAX_REPLAYED:
            break
        if each.effect.parked:
            replayed += replay_one(world, each.effect)
    if not replayed:
        if job.effects_open or job.effects_done:
            return control.Unchanged(job)
        return control.NotPossible(job, "it has no effects to replay")
    _note(world, tenant, job_id, by)
    return control.find(world, tenant, job_id) or control.NoSuchJob()


def _note(world: World, tenant: str, job_id: str, by: str) -> None:
    """Record the request in the job's history. Another request may record its own meanwhile."""
    entry = HistoryEntry(verb=Verb.REPLAY_EFFECTS, at=world.runtime.now(), by=by)
    for _ in range(control.MAX_TRIES):
        job = control.find(world, tenant, job_id)
        if job is None:
            return
        try:
            execute(world, note_request(world, job, entry))
        except Rejected:
            continue
        return


def replay_one(world: World, effect: Effect) -> bool:
    """Let recovery run a parked effect again; false when another replay was first. Raises
    Transient."""
    try:
        replay_effect(world, effect)
    except Rejected:
        return False
    world.telemetry.log(
        "effect_replayed", job_id=effect.job_id, tenant=effect.tenant, position=effect.position
    )
    return True


def open_effects_of_job(world: World, job_id: str) -> Iterator[OpenEffect]:
    """The job's open and parked effects in the order of their chunks. Raises Transient."""
    return map(_open_effect, rows_of_job(world, job_id, control_table.EFFECT_PREFIX))


def open_effects_of_all(world: World) -> Iterator[OpenEffect]:
    """All tenants' open and parked effects, perhaps a moment old. Raises Transient."""
    return map(_open_effect, rows_of_kinds(world, control_table.PARKED, control_table.EFFECT))


def _open_effect(found: Found) -> OpenEffect:
    return OpenEffect(effect_of_item(found.item), error_of(found), since(found))
