"""A sink that asks one job to wait has asked all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.effects.sink_pause import LONGEST, LOOK_EVERY, PausingSink, pause_key, pausing
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.effect import Batch, Delivered
from handlers.jobs.words.errors import NotAsked, Transient
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import now
from tests.support.sinks import OPERATION, run_job

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item, Key
    from handlers.testing.world import MemoryWorld

ASKED: Final = 20_000
BATCH: Final = Batch("j", 0, "t", "o", ())


@dataclass
class Busy:
    """A sink that asks to wait until a time, and counts who calls it."""

    world: MemoryWorld
    until: int = 0
    asked_ms: int | None = ASKED
    calls: list[int] = field(default_factory=list)

    def deliver(self, batch: Batch) -> Delivered:
        at = self.world.runtime.now()
        self.calls.append(at)
        if at < self.until:
            raise Transient("answered 429", retry_after_ms=self.asked_ms)
        return Delivered()


def busy_for(ms: int, asked_ms: int | None = ASKED) -> tuple[MemoryWorld, Busy]:
    made = memory_world(operations={"bump": OPERATION})
    return made, Busy(made, made.runtime.now() + ms, asked_ms)


def test_another_process_does_not_ask_during_the_pause() -> None:
    world, busy = busy_for(1000)
    one, other = (PausingSink(world, "index", busy) for _ in range(2))
    with pytest.raises(Transient, match="429"):
        one.deliver(BATCH)
    for sink in (one, other):
        with pytest.raises(NotAsked, match="20 s are left") as raised:
            sink.deliver(BATCH)
        assert raised.value.retry_after_ms == ASKED
    assert len(busy.calls) == 1
    world.runtime.sleep(ASKED)
    assert one.deliver(BATCH) == other.deliver(BATCH) == Delivered()


def test_a_process_that_sends_all_the_time_hears_of_a_pause_within_a_second() -> None:
    world, busy = busy_for(0)
    one, other = (PausingSink(world, "index", busy) for _ in range(2))
    other.deliver(BATCH)
    busy.until = world.runtime.now() + 1000
    with pytest.raises(Transient):
        one.deliver(BATCH)
    world.runtime.sleep(LOOK_EVERY)
    with pytest.raises(NotAsked):
        other.deliver(BATCH)


def test_another_sink_is_not_paused() -> None:
    world, busy = busy_for(1000)
    sinks = pausing(world, {"index": busy, "webhook": Busy(world)})
    with pytest.raises(Transient):
        sinks["index"].deliver(BATCH)
    assert sinks["webhook"].deliver(BATCH) == Delivered()


def test_without_a_retry_after_nobody_is_told_to_wait() -> None:
    world, busy = busy_for(1000, asked_ms=None)
    one, other = (PausingSink(world, "index", busy) for _ in range(2))
    for sink in (one, other):
        with pytest.raises(Transient, match="429"):
            sink.deliver(BATCH)


def test_a_pause_is_bounded_and_a_shorter_one_does_not_end_a_longer() -> None:
    world, busy = busy_for(10**9, asked_ms=10**9)
    with pytest.raises(Transient):
        PausingSink(world, "index", busy).deliver(BATCH)
    until = world.runtime.now() + LONGEST
    assert world.store.get(pause_key("index")) == {"until": until}
    late = PausingSink(world, "index", replace(busy, asked_ms=5))
    late._looked_at = world.runtime.now()  # it looked just before
    with pytest.raises(Transient):
        late.deliver(BATCH)
    assert world.store.get(pause_key("index")) == {"until": until}


def test_a_job_ends_and_no_try_of_its_effects_is_counted() -> None:
    world, busy = busy_for(15_000)
    world = replace(
        world,
        sinks=pausing(world, {"index": busy}),
        limits=world.limits.model_copy(update={"chunk_size": 5, "max_effect_tries": 3}),
    )
    start = world.runtime.now()
    job = run_job(world, 40)
    assert now(world, job).state is State.SETTLING
    for _ in range(60):
        world.runtime.sleep(1000)
        Recovery(world).run()
    ended = now(world, job)
    assert (ended.state, ended.effects_done, ended.effects_parked) == (State.SUCCEEDED, 8, 0)
    during = [at for at in busy.calls if start < at < start + ASKED]
    assert during == []


def test_the_row_is_read_once_a_second_and_not_during_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, busy = busy_for(1, asked_ms=10 * LOOK_EVERY)
    sink = PausingSink(world, "index", busy)
    reads: list[int] = []
    began, get = world.runtime.now(), world.store.get

    def watched(key: Key) -> Item | None:
        reads.append(world.runtime.now() - began)
        return get(key)

    monkeypatch.setattr(world.store, "get", watched)
    with pytest.raises(Transient, match="429"):
        sink.deliver(BATCH)
    for _ in range(4):
        world.runtime.sleep(2 * LOOK_EVERY)
        with pytest.raises(NotAsked):
            sink.deliver(BATCH)
    assert reads == [0]
    world.runtime.sleep(2 * LOOK_EVERY)
    for _ in range(2):
        sink.deliver(BATCH)
        world.runtime.sleep(LOOK_EVERY - 1)
    world.runtime.sleep(2 - LOOK_EVERY)
    assert reads == [0, 10 * LOOK_EVERY]
    world.runtime.sleep(LOOK_EVERY)
    sink.deliver(BATCH)
    assert len(reads) == 3
