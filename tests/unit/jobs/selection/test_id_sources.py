"""Id lists are walked to their end, each id once, from whatever checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handlers.jobs.selection.id_sources import InlineIds, Source, StoredIds, lines
from handlers.jobs.words.errors import JobFailed
from handlers.jobs.words.job import EndReason
from handlers.jobs.words.limits import PAYLOAD_BLOCK
from handlers.testing.payload_store import MemoryPayloadStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.job import IdCursor

NAME = "ids/1"
IDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), max_size=40
)


class Counting(MemoryPayloadStore):
    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int]] = []

    def read(self, name: str, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return super().read(name, offset, length)


def stored(ids: list[str], block: int = PAYLOAD_BLOCK) -> Counting:
    payloads = Counting()
    payloads.put(NAME, list(lines(ids, block)))
    return payloads


def walk(source: Source, limit: int, cursor: IdCursor = 0) -> list[tuple[str, IdCursor]]:
    """Every (id, cursor after it) from a cursor on."""
    found: list[tuple[str, IdCursor]] = []
    at: IdCursor | None = cursor
    while at is not None:
        part = source.after(at, limit)
        assert len(part.entries) <= limit
        found += [(entry.id, entry.cursor) for entry in part.entries]
        if part.next is not None and part.entries:
            assert part.next == part.entries[-1].cursor
        at = part.next
    return found


@given(IDS, st.integers(1, 60), st.integers(1, 60), st.integers(1, 9))
@example(["\n", '"', "\\", "\u2028", "😀"], 1, 1, 1)
def test_stored_ids_are_walked_each_once_and_resumed_anywhere(
    ids: list[str], written: int, block: int, limit: int
) -> None:
    payloads = stored(ids, written)
    whole = walk(StoredIds(payloads, NAME, block), limit)
    assert [id_ for id_, _ in whole] == ids
    for done, (_, cursor) in enumerate(whole, start=1):
        fresh = walk(StoredIds(payloads, NAME, block), limit, cursor)
        assert fresh == whole[done:]


@given(IDS, st.integers(1, 9))
def test_inline_ids_are_walked_each_once_and_resumed_anywhere(ids: list[str], limit: int) -> None:
    whole = walk(InlineIds(ids), limit)
    assert [id_ for id_, _ in whole] == ids
    for done, (_, cursor) in enumerate(whole, start=1):
        assert walk(InlineIds(ids), limit, cursor) == whole[done:]


@given(IDS.filter(bool), st.integers(1, 60), st.lists(st.integers(0, 39), max_size=8))
def test_one_source_may_be_sent_back_and_forth(
    ids: list[str], block: int, jumps: list[int]
) -> None:
    """After a refused commit a worker goes back; what was read ahead must not mislead it."""
    source = StoredIds(stored(ids), NAME, block)
    cursors = [0, *(cursor for _, cursor in walk(source, 5))]
    for jump in jumps:
        at = jump % len(cursors)
        assert [id_ for id_, _ in walk(source, 3, cursors[at])] == ids[at:]


@pytest.mark.parametrize("limit", [1, 96])
def test_a_block_is_read_once_whatever_the_chunk(limit: int) -> None:
    ids = [f"{n:060}" for n in range(500)]
    payloads = stored(ids)
    size = sum(map(len, lines(ids)))
    block = 4096
    walk(StoredIds(payloads, NAME, block), limit)
    assert len(payloads.reads) == -(-size // block) + 1  # one finds the end
    assert {length for _, length in payloads.reads} == {block}
    assert [offset for offset, _ in payloads.reads] == sorted({o for o, _ in payloads.reads})


def test_memory_does_not_grow_with_the_list() -> None:
    block = 4096
    source = StoredIds(stored([f"{n:060}" for n in range(5000)]), NAME, block)
    at: IdCursor | None = 0
    while at is not None:
        at = source.after(at, 96).next
        assert len(source._bytes) <= 2 * block


@pytest.mark.parametrize("block", [1, 100, 10**6])
def test_blocks_are_written_about_as_large_as_asked(block: int) -> None:
    ids = [f"{n:030}" for n in range(100)]
    written = list(lines(ids, block))
    assert b"".join(written).count(b"\n") == 100
    assert all(len(each) < block + 33 for each in written)
    assert all(len(each) >= block for each in written[:-1])


def test_a_list_that_is_gone_fails_the_job() -> None:
    with pytest.raises(JobFailed) as caught:
        StoredIds(MemoryPayloadStore(), NAME).after(0, 1)
    assert caught.value.reason is EndReason.PAYLOAD_GONE


@pytest.mark.parametrize("make", [lambda: InlineIds(["a"]), lambda: StoredIds(stored(["a"]), NAME)])
def test_a_cursor_of_another_kind_of_source_fails_the_job(make: Callable[[], Source]) -> None:
    with pytest.raises(JobFailed):
        make().after("a query's", 1)
