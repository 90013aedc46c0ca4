"""What recovery says of the outbox when it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.storage.backlog import MAX_COUNTED
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.writes import Key, Put
from handlers.testing.world import MemoryWorld, memory_world

if TYPE_CHECKING:
    import pytest

    from handlers.jobs.words.writes import Index


def add(world: MemoryWorld, kind: str, count: int) -> None:
    """Rows that are due in a while."""
    later = world.runtime.now() + 60_000
    for number in range(count):
        row = control_table.due(kind, f"{number}", later, world.due_shards)
        world.store.transact("add", [Put(Key(f"JOB#{kind}{number}", "ROW"), row)])


def test_every_row_is_counted_whatever_its_shard_and_time() -> None:
    world = memory_world()
    for count, kind in enumerate(
        (control_table.DISPATCH, control_table.EFFECT, control_table.PARKED, control_table.EVENT), 5
    ):
        add(world, kind, count)
    Recovery(world).run()
    total = world.telemetry.total
    assert total(Metric.DISPATCHES_OPEN) == 5
    assert total(Metric.EFFECTS_OPEN) == 6
    assert total(Metric.EFFECTS_WAITING) == 7
    assert total(Metric.EVENTS_OPEN) == 8


def test_no_more_are_counted_than_is_worth_it() -> None:
    world = memory_world(due_shards=1)
    add(world, control_table.EFFECT, MAX_COUNTED + 1)
    Recovery(world).run()
    assert world.telemetry.total(Metric.EFFECTS_OPEN) == MAX_COUNTED


def test_recovery_runs_when_nothing_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()

    def down(index: Index, partition: str, *, before: object, at_most: int) -> int:
        raise Transient

    monkeypatch.setattr(world.store, "count", down)
    Recovery(world).run()
    assert "open_not_counted" in world.telemetry.actions()
    assert "recovery_ran" in world.telemetry.actions()
