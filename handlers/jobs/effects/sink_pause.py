"""Pauses of sinks: a sink that asks one job to wait has asked all of them.

A sink that answers with a Retry-After gets a row with the time until which nothing is sent to it.
Every process looks at the row before it sends, at most once a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..storage.control_table import safe
from ..storage.transaction import Rejected, Transaction, execute
from ..words.errors import NotAsked, Transient
from ..words.timing import MINUTE, SECOND
from ..words.writes import AnyOf, Below, Key, Missing, Update

if TYPE_CHECKING:
    from ..words.effect import Batch, Delivered
    from ..words.ports import Sink, World

LOOK_EVERY: Final = 1 * SECOND
"""ms for which a process trusts what it read of a row."""
LONGEST: Final = 15 * MINUTE
"""The longest pause (ms), whatever the sink asks for."""
UNTIL: Final = "until"


class PausingSink:
    """``Sink`` that sends nothing while the sink has asked to wait, whichever job it asked."""

    def __init__(self, world: World, name: str, inner: Sink) -> None:
        self._world = world
        self._name = name
        self._inner = inner
        self._until = 0
        self._looked_at = 0

    def deliver(self, batch: Batch) -> Delivered:
        """As ``Sink``. Raises NotAsked during a pause."""
        now = self._world.runtime.now()
        if (left := self._paused_until(now) - now) > 0:
            raise NotAsked(
                f"asked all jobs to wait; {-(-left // SECOND)} s are left", retry_after_ms=left
            )
        try:
            delivered = self._inner.deliver(batch)
        except NotAsked:
            raise
        except Transient as error:
            self._heard(error.retry_after_ms)
            raise
        self._heard(delivered.retry_after_ms)
        return delivered

    def _paused_until(self, now: int) -> int:
        if now >= self._until and now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            until = (self._world.store.get(pause_key(self._name)) or {}).get(UNTIL)
            self._until = until if isinstance(until, int) else 0
        return self._until

    def _heard(self, asked_ms: int | None) -> None:
        """Pause the sink for every job, if it asked for that."""
        if not asked_ms:
            return
        world = self._world
        self._until = until = world.runtime.now() + min(asked_ms, LONGEST)
        write = Update(
            pause_key(self._name),
            set={UNTIL: until},
            when=(AnyOf((Missing(UNTIL), Below(UNTIL, until))),),
        )
        try:
            execute(world, Transaction("pause_sink", {"row": write}))
        except Rejected:
            return  # another process heard of a longer pause
        except Transient as error:
            world.telemetry.log("pause_not_shared", sink=self._name, why=str(error))
            return
        world.telemetry.log("sink_paused", sink=self._name, ms=until - world.runtime.now())


def pause_key(name: str) -> Key:
    return Key(f"SINK#{safe(name)}", "PAUSE")


def pausing(world: World, sinks: Mapping[str, Sink]) -> Mapping[str, Sink]:
    """The sinks, each with its pause. world: its store and its clock are used."""
    return {name: PausingSink(world, name, sink) for name, sink in sinks.items()}
