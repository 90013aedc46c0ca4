"""What the runner runs beside the chunks, and what it leaves to recovery."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.effects.runner import IDLE, MAX_WAITING, EffectRunner
from handlers.jobs.words.effect import Delivered, Effect
from handlers.jobs.words.errors import NotAsked, Transient
from handlers.jobs.words.job import Lane
from handlers.testing.world import memory_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.writes import Write
    from handlers.testing.world import MemoryWorld

WORLD: Final = memory_world()
PAUSE: Final = round(WORLD.timing.effect_retry_base * 1000)
PATIENCE: Final = round(WORLD.timing.effect_grace * 1000) // 3


@dataclass
class Slow:
    """A sink that takes its time, and may raise or refuse."""

    world: MemoryWorld
    takes: int = 0
    """ms"""
    raises: list[Exception] = field(default_factory=list)
    refuses: bool = False
    got: list[int] = field(default_factory=list)
    """Positions."""

    def deliver(self, batch: Batch) -> Delivered:
        self.world.runtime.sleep(self.takes)
        if self.raises:
            raise self.raises.pop()
        self.got.append(batch.position)
        return Delivered(refused={"r": "no"} if self.refuses else {})


def sink(takes: int = 0, *raises: Exception, refuses: bool = False) -> tuple[MemoryWorld, Slow]:
    world = memory_world()
    slow = Slow(world, takes, list(raises), refuses)
    return replace(world, sinks={"index": slow}), slow


def effect(position: int = 0) -> Effect:
    return Effect("j", position, "t", "bump", "small", {"r": 1}, {"index": None})


def add(runner: EffectRunner, *positions: int) -> None:
    for position in positions:
        runner.add(effect(position))


def attempts(world: MemoryWorld) -> list[tuple[str, int]]:
    """The runner's transactions from now on, each with its time since now."""
    found: list[tuple[str, int]] = []
    began = world.runtime.now()
    transact = world.store.transact

    def watched(action: str, writes: Sequence[Write]) -> None:
        found.append((action, world.runtime.now() - began))
        transact(action, writes)

    world.store.transact = watched  # type: ignore[method-assign]  # a store that is watched
    return found


def test_what_waits_is_run_at_the_end_only_when_it_is_asked_for() -> None:
    for drain, expected in ((True, [0, 1]), (False, [])):
        world, index = sink()
        runner = EffectRunner(world, Lane.SMALL)
        add(runner, 0, 1)
        runner.stop(drain=drain)
        assert index.got == expected


def test_a_process_that_stops_runs_no_further_effect() -> None:
    world, index = sink(1000)
    stopping: list[bool] = []
    runner = EffectRunner(world, Lane.SMALL, stopping=lambda: bool(stopping))
    add(runner, 0, 1)
    world.runtime.sleep(500)
    stopping.append(True)
    add(runner, 2)
    runner.stop(drain=True)
    assert index.got == [0]


@pytest.mark.parametrize(("left", "expected"), [(1000, [0, 1]), (999, [0])])
def test_an_effect_is_run_if_one_as_slow_as_the_slowest_would_end_in_time(
    left: int, expected: list[int]
) -> None:
    world, index = sink(1000)
    runner = EffectRunner(world, Lane.SMALL, ends_by=world.runtime.now() + 1000 + left)
    add(runner, 0)
    world.runtime.sleep(1000)
    world.runtime.sleep(0)
    add(runner, 1)
    runner.stop(drain=True)
    world.runtime.sleep(1)
    assert index.got == expected


def test_the_slowest_run_counts_not_the_last_one() -> None:
    world, index = sink(2000)
    runner = EffectRunner(world, Lane.SMALL, ends_by=world.runtime.now() + 4000)
    add(runner, 0)
    world.runtime.sleep(2000)
    index.takes = 500
    add(runner, 1)
    world.runtime.sleep(500)
    add(runner, 2)
    runner.stop(drain=True)
    assert index.got == [0, 1]


def test_the_end_waits_for_what_is_in_flight_and_not_beyond_its_time() -> None:
    for ends_in, expected in ((3001, [0]), (2999, [])):
        world, index = sink(3000)
        runner = EffectRunner(world, Lane.SMALL, ends_by=world.runtime.now() + ends_in)
        began = world.runtime.now()
        add(runner, 0)
        runner.stop(drain=True)
        assert world.runtime.now() - began == min(ends_in, 3000)
        assert index.got == expected
        outlives = "effect_outlives_attempt" in world.telemetry.actions()
        assert outlives is (not expected)


def test_a_full_queue_is_waited_for() -> None:
    world, index = sink(1000)
    runner = EffectRunner(world, Lane.SMALL)
    add(runner, *range(MAX_WAITING))
    assert world.runtime.now() == WORLD.runtime.now()
    add(runner, MAX_WAITING)
    assert world.runtime.now() > WORLD.runtime.now()
    runner.stop(drain=True)
    assert index.got == [*range(MAX_WAITING + 1)]


def test_a_full_queue_is_not_waited_for_while_the_sink_fails() -> None:
    world, index = sink(1000, Transient("down"))
    runner = EffectRunner(world, Lane.SMALL)
    add(runner, *range(MAX_WAITING + 2))
    assert world.runtime.now() - WORLD.runtime.now() < PAUSE
    runner.stop(drain=True)
    assert index.got == []


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (Transient("down"), PAUSE),
        (Transient("asks to wait", retry_after_ms=4000), PAUSE),
        (NotAsked("others were asked to wait", retry_after_ms=4000), 4000),
        (NotAsked("others were asked to wait"), PAUSE),
        (ZeroDivisionError("a bug"), PAUSE),
    ],
)
@pytest.mark.parametrize("early", [0, 1])
def test_nothing_is_run_until_a_failed_sink_may_be_back(
    error: Exception, pause: int, early: int
) -> None:
    world, index = sink(0, error)
    runner = EffectRunner(world, Lane.SMALL)
    add(runner, 0)
    world.runtime.sleep(0)
    world.runtime.sleep(pause - early)
    add(runner, 1)
    runner.stop(drain=True)
    assert index.got == ([] if early else [1])
    assert "effect_crashed" not in world.telemetry.actions()


def test_done_effects_are_recorded_before_recovery_would_run_them() -> None:
    """However late others are added."""
    world, _ = sink()
    seen = attempts(world)
    runner = EffectRunner(world, Lane.SMALL)
    add(runner, 0)
    world.runtime.sleep(PATIENCE // 2)
    add(runner, 1)
    world.runtime.sleep(PATIENCE)
    [(action, at)] = seen[:1]
    assert action == "effects_done"
    assert PATIENCE < at <= PATIENCE + IDLE
    runner.stop(drain=True)


def test_an_effect_with_refused_records_is_recorded_at_once() -> None:
    world, _ = sink(refuses=True)
    seen = attempts(world)
    runner = EffectRunner(world, Lane.SMALL)
    add(runner, 0)
    world.runtime.sleep(0)
    world.runtime.sleep(1)
    assert [action for action, _ in seen] == ["effect_done"]
    runner.stop(drain=True)
