"""C109: a dead letter that is set aside is never lost, wherever the process dies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from handlers.jobs.lifecycle.dead_letters import read_letter
from handlers.jobs.lifecycle.set_aside import (
    MAX_BODY_BYTES,
    NotKept,
    letters_aside,
    put_back,
    set_aside,
)
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message, group_of
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, new_job

LANE = Lane.SMALL


def dead_world() -> MemoryWorld:
    world = memory_world()
    new_job(world, fill(world, 1))
    [stored] = world.queues[LANE].snapshot()
    world.dead_letters[LANE].accept_dead_letter(stored, world.runtime.now())
    return world


def aside(world: MemoryWorld) -> None:
    [delivery] = world.dead_letters[LANE].receive(1, 0)
    set_aside(world, LANE, world.dead_letters[LANE], read_letter(world, delivery), why="later")


def kept(world: MemoryWorld) -> int:
    return len([*letters_aside(world, LANE)])


def test_c109_a_crash_before_the_message_is_deleted_leaves_it_in_both_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = dead_world()
    queue = world.dead_letters[LANE]

    def dies(receipt: str) -> None:
        raise Transient("gone")

    with monkeypatch.context() as patch:
        patch.setattr(queue, "delete", dies)
        with pytest.raises(Transient):
            aside(world)
    assert (kept(world), len(queue.snapshot())) == (1, 1)
    world.runtime.sleep(60_000)
    aside(world)
    assert (kept(world), len(queue.snapshot())) == (1, 0)


def test_c109_a_letter_that_the_queue_does_not_take_back_stays_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = dead_world()
    queue = world.dead_letters[LANE]
    aside(world)
    [letter] = letters_aside(world, LANE)

    def refuses(messages: Sequence[Message]) -> frozenset[int]:
        return frozenset(range(len(messages)))

    with monkeypatch.context() as patch:
        patch.setattr(queue, "send", refuses)
        with pytest.raises(Transient):
            put_back(world, queue, letter)
    assert kept(world) == 1
    put_back(world, queue, letter)
    assert (kept(world), [m.body for m in queue.snapshot()]) == (0, [letter.body])


def test_c109_more_letters_than_a_page_are_all_shown() -> None:
    world = dead_world()
    [stored] = world.dead_letters[LANE].snapshot()
    aside(world)
    for number in range(120):
        stored.message_id = f"m{number}"
        world.dead_letters[LANE].accept_dead_letter(stored, world.runtime.now())
        aside(world)
    assert kept(world) == 121


def test_c109_a_body_that_no_item_has_room_for_stays_in_the_queue() -> None:
    for size, stays in ((MAX_BODY_BYTES, 0), (MAX_BODY_BYTES + 1, 1)):
        world = dead_world()
        queue = world.dead_letters[LANE]
        [delivery] = queue.receive(1, 0)
        letter = read_letter(world, replace(delivery, body="x" * size))
        if stays:
            with pytest.raises(NotKept):
                set_aside(world, LANE, queue, letter, why="later")
        else:
            set_aside(world, LANE, queue, letter, why="later")
        assert (kept(world), len(queue.snapshot())) == (1 - stays, stays)


@pytest.mark.parametrize(
    ("told", "known", "group"),
    [("g", True, "g"), ("g", False, "g"), ("", True, group_of(TENANT)), ("", False, "")],
)
def test_c109_a_letter_keeps_its_group_or_has_that_of_its_tenant(
    told: str,
    known: bool,  # noqa: FBT001  a parameter of the test
    group: str,
) -> None:
    world = dead_world()
    queue = world.dead_letters[LANE]
    [delivery] = queue.receive(1, 0)
    letter = read_letter(world, replace(delivery, group=told))
    letter = letter if known else replace(letter, job=None)
    assert set_aside(world, LANE, queue, letter, why="later").group == group
