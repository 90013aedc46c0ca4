"""Chunks read ahead of the one that commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.prefetch import DEPTH, Chunk, Prefetch
from handlers.jobs.selection.id_sources import Part
from handlers.jobs.words.errors import Transient
from handlers.testing.world import MemoryWorld, memory_world

if TYPE_CHECKING:
    from handlers.jobs.words.job import IdCursor

CHUNKS: Final = 6


class Reads:
    """Chunk n begins at cursor n and takes a second to read."""

    def __init__(self, world: MemoryWorld, fails_at: int | None = None) -> None:
        self.world = world
        self.fails_at = fails_at
        self.begun: list[IdCursor] = []
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self, cursor: IdCursor) -> Chunk:
        self.begun.append(cursor)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.world.runtime.sleep(1000)
        self.at_once -= 1
        if cursor == self.fails_at:
            raise Transient(f"chunk {cursor}")
        assert isinstance(cursor, int)
        return Chunk(Part((), cursor + 1 if cursor + 1 < CHUNKS else None), {})


@pytest.fixture
def world() -> MemoryWorld:
    return memory_world()


def test_every_chunk_is_read_once_and_one_after_another(world: MemoryWorld) -> None:
    reads = Reads(world)
    ahead = Prefetch(world, reads)
    cursor: IdCursor | None = 0
    taken = []
    while cursor is not None:
        taken.append(cursor)
        cursor = ahead.take(cursor).part.next
    ahead.close()
    assert taken == reads.begun == list(range(CHUNKS))
    assert reads.most_at_once == 1


def test_the_next_chunks_are_read_while_one_commits_and_no_more(world: MemoryWorld) -> None:
    reads = Reads(world)
    ahead = Prefetch(world, reads)
    ahead.take(0)
    world.runtime.sleep(60_000)  # the commit
    assert reads.begun == list(range(1 + DEPTH))
    before = world.runtime.now()
    ahead.take(1)
    assert world.runtime.now() == before  # it was there
    ahead.close()


def test_a_worker_that_goes_elsewhere_reads_anew(world: MemoryWorld) -> None:
    reads = Reads(world)
    ahead = Prefetch(world, reads)
    ahead.take(0)
    assert ahead.take(0).part.next == 1
    assert reads.begun.count(0) == 2
    assert [ahead.take(n).part.next for n in (1, 2, 4)] == [2, 3, 5]
    ahead.close()


def test_what_a_chunk_raises_is_raised_where_it_is_taken(world: MemoryWorld) -> None:
    reads = Reads(world, fails_at=2)
    ahead = Prefetch(world, reads)
    ahead.take(0)
    world.runtime.sleep(60_000)
    ahead.take(1)
    with pytest.raises(Transient, match="chunk 2"):
        ahead.take(2)
    ahead.close()
    assert 3 not in reads.begun


def test_closing_waits_for_what_is_being_read_and_begins_no_more(world: MemoryWorld) -> None:
    reads = Reads(world)
    ahead = Prefetch(world, reads)
    ahead.take(0)
    world.runtime.sleep(500)
    assert reads.at_once == 1
    ahead.close()
    assert reads.at_once == 0
    world.runtime.sleep(60_000)
    assert reads.begun == [0, 1]


def test_after_a_close_the_next_chunk_is_read_when_it_is_taken(world: MemoryWorld) -> None:
    reads = Reads(world)
    ahead = Prefetch(world, reads)
    ahead.take(0)
    ahead.close()
    assert ahead.take(1).part.next == 2
    ahead.close()
    assert 1 in reads.begun


def test_behind_the_last_chunk_nothing_is_begun(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = Prefetch(world, Reads(world))
    spawned: list[str] = []
    monkeypatch.setattr(world.runtime, "spawn", lambda name, _run: spawned.append(name))
    assert ahead.take(CHUNKS - 1).part.next is None
    assert spawned == []
