"""The write that makes the stored job what a transition says it is afterwards.

A transition computes the job afterwards once. The stored item, the event and the answer all derive
from that value, so they cannot disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..words.job import Job
from ..words.states import reason_for
from ..words.writes import Update
from . import control_table

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import Item, Value, When

COUNTERS: Final = (
    *("succeeded", "failed", "skipped"),
    *("effects_open", "effects_done", "effects_parked", "effects_refused"),
)
"""Fields that more than one writer changes: they are added to, never set."""


def job_update(
    world: World, before: Job, after: Job, *, when: When, beside: Item | None = None
) -> Update:
    """The update that sets, adds or removes exactly the attributes that differ.

    before: the job as read; ``when`` makes sure that it has not changed. beside: attributes that
    are not fields of a job. Raises IllegalTransition for an edge that does not exist.
    """
    if after.state is not before.state or after.attempt > before.attempt:
        reason_for(before.state, after.state)
    changed = [
        name
        for name in Job.model_fields
        if name not in COUNTERS and _differs(getattr(before, name), getattr(after, name))
    ]
    values = {name: getattr(after, name) for name in changed}
    set_: dict[str, Value] = control_table.stored(values)
    gone = [name for name, value in values.items() if value is None]
    old, new = control_table.beside_fields(world, before), control_table.beside_fields(world, after)
    set_ |= {name: value for name, value in new.items() if old.get(name) != value}
    gone += [name for name in old if name not in new]
    return Update(
        control_table.job_key(after.id),
        set={**set_, **(beside or {})},
        add={name: by for name in COUNTERS if (by := getattr(after, name) - getattr(before, name))},
        remove=tuple(gone),
        when=when,
    )


def _differs(before: object, after: object) -> bool:
    return before is not after and before != after
