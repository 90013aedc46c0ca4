"""C109: a command that changes something leaves who ran it, also when it does not end."""

from __future__ import annotations

from handlers.jobs.storage.operator_log import DAY, Entry, close_entry, entries, open_entry
from handlers.testing.world import memory_world

WHO = "arn:aws:iam::123456789012:user/ada"


def test_c109_a_command_is_there_before_it_acts_and_gets_its_outcome() -> None:
    world = memory_world()
    at = world.runtime.now()
    key = open_entry(world, who=WHO, command="dlq redrive", arguments={"job": "7", "force": True})
    begun = Entry(at, WHO, "dlq redrive", {"job": "7", "force": True}, "")
    assert [*entries(world, 1)] == [begun]
    close_entry(world, key, "1 retried")
    assert [entry.outcome for entry in entries(world, 1)] == ["1 retried"]
    item = world.store.get(key)
    assert item is not None
    assert item["expires_at_seconds"] == world.timing.history_ends(at)


def test_c109_days_are_read_back_oldest_first() -> None:
    world = memory_world()
    for number in range(3):
        world.runtime.sleep(DAY)
        for _ in range(2):
            open_entry(world, who=WHO, command=f"c{number}", arguments={})
            world.runtime.sleep(1)
    commands = [entry.command for entry in entries(world, 2)]
    assert commands == ["c1", "c1", "c2", "c2"]
    assert len([*entries(world, 3)]) == 6


def test_c109_more_commands_than_a_page_are_all_read() -> None:
    world = memory_world()
    for number in range(230):
        open_entry(world, who=WHO, command=str(number), arguments={})
        world.runtime.sleep(1)
    assert [entry.command for entry in entries(world, 1)] == [str(n) for n in range(230)]
