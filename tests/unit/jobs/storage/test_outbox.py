"""One row of the outbox: claimed, tried again, parked, replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handlers.jobs.storage import control_table, outbox
from handlers.jobs.storage.transaction import Rejected
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.writes import Put, Update
from handlers.testing.world import MemoryWorld, memory_world

KEY = control_table.effect_key("j", 0)


def a_row(world: MemoryWorld, **attributes: Any) -> Mapping[str, Any]:
    due = control_table.due(control_table.EFFECT, "j", world.runtime.now(), world.due_shards)
    world.store.transact("row", [Put(KEY, {"tries": 0, **due, **attributes})])
    return read(world)


def read(world: MemoryWorld) -> Mapping[str, Any]:
    item = world.store.get(KEY)
    assert item is not None
    return item


def claimed(world: MemoryWorld, row: Mapping[str, Any]) -> outbox.Claim:
    return outbox.claim(world, "x", KEY, tries=row["tries"], due_at=row["due_sk"], ms=5000)


def test_of_two_runs_one_has_the_row_and_its_try_is_counted() -> None:
    world = memory_world()
    row = a_row(world)
    claim = claimed(world, row)
    assert (claim.tries, claim.until) == (1, world.runtime.now() + 5000)
    assert (read(world)["tries"], read(world)["due_sk"]) == (1, claim.until)
    with pytest.raises(Rejected):
        claimed(world, row)


def test_a_claim_that_was_overtaken_no_longer_holds() -> None:
    world = memory_world()
    claim = claimed(world, a_row(world))
    held = Update(KEY, set=outbox.retried(world, tries=1, error="down"), when=claim.holds)
    world.store.transact("retry", [held])
    assert read(world)["last_error"] == "down"
    with pytest.raises(Refused):
        world.store.transact("late", [held])


def test_waits_grow_to_a_cap_and_are_never_shorter_than_asked() -> None:
    world = memory_world()
    cap = world.timing.effect_retry_cap * 1000
    longest = [max(outbox.wait_ms(world, tries) for _ in range(50)) for tries in (1, 4, 60)]
    assert longest[0] < longest[1] <= longest[2] <= cap
    assert outbox.wait_ms(world, 1, asked_ms=7_000) >= 7_000


def test_a_parked_row_is_replayed_once_as_if_never_tried() -> None:
    world = memory_world()
    a_row(world, tries=9)
    parked = outbox.parked(world, control_table.EFFECT, "j", error="refused")
    world.store.transact("park", [Update(KEY, set=parked)])
    replay = outbox.replayed(world, KEY, control_table.EFFECT, "j", beside={"more": 1})
    world.store.transact("replay", [replay])
    row = read(world)
    assert (row["tries"], row["more"], "parked" in row) == (0, 1, False)
    with pytest.raises(Refused):
        world.store.transact("replay", [replay])


def test_rows_are_found_by_job_and_by_kind() -> None:
    world = memory_world()
    a_row(world, last_error="why")
    [mine] = outbox.rows_of_job(world, "j", control_table.EFFECT_PREFIX)
    [anyones] = outbox.rows_of_kinds(world, control_table.EFFECT)
    assert mine.key == anyones.key == KEY
    assert outbox.error_of(mine) == "why"
    assert not list(outbox.rows_of_job(world, "k", control_table.EFFECT_PREFIX))
