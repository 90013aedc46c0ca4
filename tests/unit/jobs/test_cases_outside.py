"""One silent place outside does not stop the news of everybody else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.effect import Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import EVENT_BUS
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE, SECOND
from tests.support.listeners import Ear, rows
from tests.support.sinks import Index, a_world, run_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.event import JobEvent
    from handlers.testing.runtime import ManualRuntime
    from handlers.testing.world import MemoryWorld

WAIT: Final = 10 * SECOND
"""How long a silent place is waited for."""
RUN: Final = 30 * SECOND
"""How long a run of recovery begins items."""


class Killed(BaseException):
    """The function's time is up in the middle of a call."""


@dataclass
class Silent:
    """A sink and a listener that does not answer."""

    runtime: ManualRuntime
    asked: int = 0
    kills: bool = False

    def deliver(self, _: Batch) -> Delivered:
        self._wait()
        return Delivered()

    def deliver_event(self, _: JobEvent) -> None:
        self._wait()

    def _wait(self) -> None:
        self.asked += 1
        if self.kills:
            raise Killed
        self.runtime.sleep(WAIT)
        raise Transient("no answer")


def run(world: MemoryWorld) -> None:
    """A run of recovery, a minute after the last one."""
    world.runtime.sleep(MINUTE)
    ends = world.runtime.now() + RUN
    try:
        Recovery(world, lambda: world.runtime.now() >= ends).run()
    except Killed:
        return


def with_effects(silent: Silent, jobs: int, world: MemoryWorld) -> MemoryWorld:
    """With three open effects of each job, whose sink does not answer."""
    down = replace(world, sinks={"index": Index(failures=10**9)})
    for _ in range(jobs):
        assert run_job(down, 12).state is State.SETTLING
    return replace(world, sinks={"index": silent})


def with_event(world: MemoryWorld) -> MemoryWorld:
    """With an event that the bus did not take."""
    missed = replace(world, listeners={EVENT_BUS: Ear(fails=Transient("away"))})
    run_job(replace(missed, sinks={}), 1)
    assert rows(world)
    return world


def effect_rows(world: MemoryWorld) -> list[Mapping[str, Any]]:
    found = world.store.snapshot().items()
    return [item for key, item in found if key.sk.startswith("EFFECT#")]


def test_c101_a_silent_sink_is_asked_once_a_run_and_others_are_heard() -> None:
    bus, world = Ear(), a_world(Index())
    silent = Silent(world.runtime)
    world = with_event(with_effects(silent, 30, world))
    assert len(effect_rows(world)) == 90
    world = replace(world, listeners={EVENT_BUS: bus})
    for runs in (1, 2):
        run(world)
        assert silent.asked == runs
    assert {"created", "ended"} <= set(bus.said)


@pytest.mark.parametrize("kills", [False, True])
def test_c101_an_effect_is_parked_after_its_tries_whatever_ends_them(*, kills: bool) -> None:
    """Also when the run is killed in the middle of each call, before it can note anything."""
    world = a_world(Index(), max_effect_tries=3)
    silent = Silent(world.runtime, kills=kills)
    world = with_effects(silent, 1, world)
    for _ in range(30):
        run(world)
    assert [item.get("parked") for item in effect_rows(world)] == [True] * 3
    assert silent.asked <= 9


@pytest.mark.parametrize("kills", [False, True])
def test_c101_an_event_is_parked_after_its_tries_whatever_ends_them(*, kills: bool) -> None:
    world = with_event(a_world(Index(), max_effect_tries=3))
    silent = Silent(world.runtime, kills=kills)
    world = replace(world, listeners={EVENT_BUS: silent})
    for _ in range(60):
        run(world)
    left = rows(world)
    assert left
    assert all(item.get("parked") for item in left)
    assert silent.asked <= 3 * len(left)


def test_c101_a_silent_bus_is_asked_once_a_run_and_effects_are_sent() -> None:
    index, world = Index(), a_world(Index())
    silent = Silent(world.runtime)
    world = with_effects(silent, 10, with_event(world))
    world = replace(world, listeners={EVENT_BUS: silent}, sinks={"index": index})
    run(world)
    assert silent.asked == 1
    assert effect_rows(world) == []


def test_c101_a_sink_that_fails_fast_is_not_silent() -> None:
    """An error of one effect says nothing about the next one."""
    index = Index(failures=1)
    world = a_world(index)
    world = replace(with_effects(Silent(world.runtime), 1, world), sinks={"index": index})
    run(world)
    assert len(effect_rows(world)) == 1
