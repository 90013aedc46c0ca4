"""A deployment may have fewer shards from one day on: what lies in the others is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.storage.shards import recording_shards, with_all_shards
from handlers.jobs.words.errors import OutcomeUnknown, Transient
from handlers.jobs.words.writes import Index, Put
from handlers.testing.job_store import MemoryStore
from handlers.testing.world import MemoryWorld, memory_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.writes import Item, Key, Write

MANY: Final = 8
ROWS: Final = 40


def written(world: MemoryWorld) -> MemoryWorld:
    """Dispatch rows in every shard that the deployment has, due."""
    for number in range(ROWS):
        row = {
            "job_id": f"{number:032x}",
            "tenant": "acme",
            "lane": "small",
            "tries": 0,
            **control_table.due(
                control_table.DISPATCH, f"{number}", world.runtime.now(), world.due_shards
            ),
        }
        world.store.transact("row", [Put(control_table.dispatch_key(f"{number:032x}", 1), row)])
    partitions = {item.get(Index.DUE.pk) for item in world.store.snapshot().values()}
    assert len(partitions) == world.due_shards
    return world


def test_what_lies_in_shards_that_are_no_more_is_found() -> None:
    world = written(memory_world(due_shards=MANY))
    recording_shards(world)  # a run before the change
    fewer = recording_shards(replace(world, due_shards=2))
    assert Recovery(fewer).run()[control_table.DISPATCH] == ROWS


def test_the_number_only_rises() -> None:
    world = memory_world(due_shards=4)
    assert with_all_shards(world).due_shards == 4
    for shards, most in ((4, 4), (2, 4), (8, 8), (1, 8), (4, 8)):
        here = replace(world, due_shards=shards)
        assert recording_shards(here).due_shards == most
        assert with_all_shards(replace(world, due_shards=1)).due_shards == most


def test_asking_alone_notes_nothing() -> None:
    world = memory_world(due_shards=MANY)
    before = world.store.snapshot()
    with_all_shards(world)
    assert world.store.snapshot() == before


def test_a_run_writes_once_what_it_has_noted() -> None:
    world = memory_world(due_shards=MANY)
    recording_shards(world)
    before = world.store.snapshot()
    recording_shards(world)
    assert world.store.snapshot() == before
    assert "shards_not_noted" not in world.telemetry.actions()


def test_of_two_runs_at_once_the_larger_number_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world(due_shards=2)
    get = MemoryStore.get

    def other_run_first(store: MemoryStore, key: Key) -> Item | None:
        found = get(store, key)
        monkeypatch.setattr(MemoryStore, "get", get)
        recording_shards(replace(world, due_shards=MANY))
        return found

    monkeypatch.setattr(MemoryStore, "get", other_run_first)
    recording_shards(world)
    assert with_all_shards(world).due_shards == MANY


@pytest.mark.parametrize("error", [Transient("down"), OutcomeUnknown()])
def test_a_run_goes_on_without_the_note(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    world = written(memory_world(due_shards=MANY))

    def down(store: MemoryStore, action: str, writes: Sequence[Write]) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(MemoryStore, "transact", down)
        here = recording_shards(world)
    assert Recovery(here).run()[control_table.DISPATCH] == ROWS
    assert "shards_not_noted" in world.telemetry.actions()
