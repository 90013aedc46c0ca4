"""What the small lane leaves of its dwell for the bulk lane."""

from __future__ import annotations

from handlers.jobs.storage.small_dwell import ITEMS, write_dwell
from handlers.jobs.storage.small_dwell import read_dwells as read
from handlers.testing.world import memory_world


def test_a_reader_finds_what_was_left_since() -> None:
    world = memory_world()
    start = world.runtime.now()
    write_dwell(world, 1, dwell_ms=40, quiet_ms=30)
    world.runtime.sleep(5000)
    write_dwell(world, 2, dwell_ms=90, quiet_ms=31)
    assert sorted(read(world, since=start - 1)) == [(40, 30), (90, 31)]
    assert read(world, since=start) == [(90, 31)]
    assert read(world, since=world.runtime.now()) == []


def test_processes_share_a_few_items() -> None:
    world = memory_world()
    for number in range(3 * ITEMS):
        write_dwell(world, number, dwell_ms=number, quiet_ms=1)
    newest = range(2 * ITEMS, 3 * ITEMS)
    assert sorted(read(world, since=0)) == [(number, 1) for number in newest]
