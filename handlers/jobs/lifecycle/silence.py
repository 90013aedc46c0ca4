"""A place outside that was silent is not asked again in the same run of recovery.

One silent place would otherwise use up the time of a whole run, call by call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..words.errors import NotAsked, Transient
from ..words.event import ADDRESS
from ..words.timing import SILENT

if TYPE_CHECKING:
    from ..words.effect import Batch, Delivered
    from ..words.event import JobEvent
    from ..words.ports import Listener, Runtime, Sink, World


@dataclass
class SinkOfRun:
    """``Sink`` that is asked no more once it was silent. An effect that is not sent because of that
    counts as tried: it comes nearer to being parked, which raises the alarm."""

    inner: Sink
    runtime: Runtime
    _silence: str = field(default="", init=False)

    def deliver(self, batch: Batch) -> Delivered:
        if self._silence:
            raise Transient(f"silent in this run: {self._silence}")
        since = self.runtime.now()
        try:
            return self.inner.deliver(batch)
        except Transient as error:
            if self.runtime.now() - since >= SILENT:
                self._silence = str(error)
            raise


@dataclass
class ListenerOfRun:
    """``Listener`` that is asked no more once it was silent."""

    inner: Listener
    runtime: Runtime
    _silent: bool = field(default=False, init=False)

    def deliver_event(self, event: JobEvent) -> None:
        if self._silent:
            raise NotAsked("silent in this run")
        since = self.runtime.now()
        try:
            self.inner.deliver_event(event)
        except Transient:
            self._silent = self.runtime.now() - since >= SILENT
            raise


def world_of_run(world: World) -> World:
    """The world for one run. Addresses of tenants are each a place of their own: see
    ``EventDelivery``."""
    listeners = {
        name: each if name == ADDRESS else ListenerOfRun(each, world.runtime)
        for name, each in world.listeners.items()
    }
    sinks = {name: SinkOfRun(each, world.runtime) for name, each in world.sinks.items()}
    return replace(world, listeners=listeners, sinks=sinks)
