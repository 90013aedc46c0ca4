"""What recovery says of the outbox when it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handlers.jobs import items
from handlers.jobs.errors import Transient
from handlers.jobs.measures import Measure
from handlers.jobs.open import MOST
from handlers.jobs.recover import Recovery
from handlers.jobs.store import Key, Put
from tests.support.world import MemoryWorld, memory_world

if TYPE_CHECKING:
    import pytest

    from handlers.jobs.store import Index


def add(world: MemoryWorld, kind: str, count: int) -> None:
    """Rows that are due in a while."""
    later = world.runtime.now() + 60_000
    for number in range(count):
        row = items.due(kind, f"{number}", later, world.due_shards)
        world.store.transact("add", [Put(Key(f"JOB#{kind}{number}", "ROW"), row)])


def test_every_row_is_counted_whatever_its_shard_and_time() -> None:
    world = memory_world()
    for count, kind in enumerate((items.DISPATCH, items.EFFECT, items.PARKED, items.EVENT), 5):
        add(world, kind, count)
    Recovery(world).run()
    total = world.telemetry.total
    assert total(Measure.DISPATCHES_OPEN) == 5
    assert total(Measure.EFFECTS_OPEN) == 6
    assert total(Measure.EFFECTS_WAITING) == 7
    assert total(Measure.EVENTS_OPEN) == 8


def test_no_more_are_counted_than_is_worth_it() -> None:
    world = memory_world(due_shards=1)
    add(world, items.EFFECT, MOST + 1)
    Recovery(world).run()
    assert world.telemetry.total(Measure.EFFECTS_OPEN) == MOST


def test_recovery_runs_when_nothing_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()

    def down(index: Index, partition: str, *, before: object, at_most: int) -> int:
        raise Transient

    monkeypatch.setattr(world.store, "count", down)
    Recovery(world).run()
    assert "open_not_counted" in world.telemetry.actions()
    assert "recovery_ran" in world.telemetry.actions()
