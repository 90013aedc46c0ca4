"""A silent place is asked once in a run of recovery."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from handlers.jobs.lifecycle.silence import ListenerOfRun, SinkOfRun, world_of_run
from handlers.jobs.words.errors import NotAsked, Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS
from handlers.jobs.words.timing import SILENT
from handlers.testing.world import MemoryWorld, memory_world


@dataclass
class Place:
    """Refuses everything, after a while."""

    world: MemoryWorld
    takes: int
    asked: list[Any] = field(default_factory=list)

    def deliver(self, batch: Any) -> Any:
        self.asked.append(batch)
        self.world.runtime.sleep(self.takes)
        raise Transient("no answer")

    def deliver_event(self, event: Any) -> None:
        self.deliver(event)


@pytest.fixture
def world() -> MemoryWorld:
    return memory_world()


@pytest.mark.parametrize(("takes", "asked"), [(SILENT, 1), (SILENT - 1, 3)])
def test_a_sink_is_asked_again_unless_it_was_silent(
    world: MemoryWorld, takes: int, asked: int
) -> None:
    place = Place(world, takes)
    sink = SinkOfRun(place, world.runtime)
    for _ in range(3):
        with pytest.raises(Transient, match="no answer"):
            sink.deliver("batch")  # type: ignore[arg-type]
    assert len(place.asked) == asked


@pytest.mark.parametrize(("takes", "asked"), [(SILENT, 1), (SILENT - 1, 3)])
def test_a_listener_is_asked_again_unless_it_was_silent(
    world: MemoryWorld, takes: int, asked: int
) -> None:
    place = Place(world, takes)
    listener = ListenerOfRun(place, world.runtime)
    for number in range(3):
        with pytest.raises(NotAsked if number >= asked else Transient):
            listener.deliver_event("event")  # type: ignore[arg-type]
    assert len(place.asked) == asked


def test_a_run_has_its_own_memory_and_addresses_have_none(world: MemoryWorld) -> None:
    place = Place(world, SILENT)
    world.sinks["index"] = place  # type: ignore[index]
    world.listeners.update({EVENT_BUS: place, ADDRESS: place})  # type: ignore[attr-defined]
    one, other = world_of_run(world), world_of_run(world)
    for run in (one, one, other):
        with pytest.raises(Transient):
            run.sinks["index"].deliver("batch")  # type: ignore[arg-type]
    assert len(place.asked) == 2
    assert one.listeners[ADDRESS] is place
    assert isinstance(one.listeners[EVENT_BUS], ListenerOfRun)
