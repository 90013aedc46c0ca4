"""Stored id lists: written once, read in ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.words.errors import PayloadGone

if TYPE_CHECKING:
    from handlers.jobs.words.ports import PayloadStore

NAME: Final = "jobs/j1/ids"


def test_blocks_become_one_object(payloads: PayloadStore) -> None:
    assert payloads.put(NAME, [b"0123", b"", b"456", b"789"]) == 10
    assert payloads.read(NAME, 0, 100) == b"0123456789"


RANGES: Final = [
    # offset, length, what is there
    (0, 1, b"0"),
    (0, 10, b"0123456789"),
    (3, 4, b"3456"),
    (9, 1, b"9"),
    (9, 5, b"9"),
    (10, 5, b""),
    (11, 5, b""),
    (1_000_000, 5, b""),
]


@pytest.mark.parametrize(("offset", "length", "expected"), RANGES)
def test_a_range_ends_at_the_end(
    payloads: PayloadStore, offset: int, length: int, expected: bytes
) -> None:
    payloads.put(NAME, [b"0123456789"])
    assert payloads.read(NAME, offset, length) == expected


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, 0), (0, -1)])
def test_a_range_that_is_none_is_a_mistake(
    payloads: PayloadStore, offset: int, length: int
) -> None:
    payloads.put(NAME, [b"0123456789"])
    with pytest.raises(ValueError, match="bytes from"):
        payloads.read(NAME, offset, length)


def test_an_empty_object_is_there(payloads: PayloadStore) -> None:
    assert payloads.put(NAME, []) == 0
    assert payloads.read(NAME, 0, 10) == b""


def test_an_object_is_replaced(payloads: PayloadStore) -> None:
    payloads.put(NAME, [b"a longer first one"])
    payloads.put(NAME, [b"second"])
    assert payloads.read(NAME, 0, 100) == b"second"


def test_what_is_not_there_is_gone(payloads: PayloadStore) -> None:
    with pytest.raises(PayloadGone):
        payloads.read(NAME, 0, 10)
    payloads.put(NAME, [b"x"])
    payloads.delete(NAME)
    payloads.delete(NAME)
    with pytest.raises(PayloadGone):
        payloads.read(NAME, 0, 10)


def test_large_objects_arrive_whole(payloads: PayloadStore) -> None:
    """Above the threshold of a multipart upload, in blocks that fit no part."""
    blocks = [bytes([number % 251]) * 999_983 for number in range(20)]
    whole = b"".join(blocks)
    assert payloads.put(NAME, blocks) == len(whole)
    for offset in (0, 5 * 1024 * 1024 - 3, 8 * 1024 * 1024 - 3, 16 * 1024 * 1024 - 3):
        assert payloads.read(NAME, offset, 1000) == whole[offset : offset + 1000]
    assert payloads.read(NAME, len(whole) - 3, 1000) == whole[-3:]


@pytest.mark.parametrize("name", ["jobs/ü/ids", "jobs/a b+c%2F?#", "jobs/😀"])
def test_names_are_opaque(payloads: PayloadStore, name: str) -> None:
    payloads.put(name, [b"x"])
    assert payloads.read(name, 0, 1) == b"x"
    payloads.delete(name)
    with pytest.raises(PayloadGone):
        payloads.read(name, 0, 1)


class Broken(Exception):
    pass


@pytest.mark.parametrize("whole_parts", [0, 3])
def test_blocks_that_break_off_leave_no_object(payloads: PayloadStore, whole_parts: int) -> None:
    """Also after the first parts of a multipart upload."""

    def blocks() -> Iterator[bytes]:
        for _ in range(whole_parts):
            yield b"x" * 8 * 1024 * 1024
        yield b"x"
        raise Broken

    with pytest.raises(Broken):
        payloads.put(NAME, blocks())
    with pytest.raises(PayloadGone):
        payloads.read(NAME, 0, 1)


def test_blocks_that_break_off_leave_the_object_of_before(payloads: PayloadStore) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"second"
        raise Broken

    payloads.put(NAME, [b"first"])
    with pytest.raises(Broken):
        payloads.put(NAME, blocks())
    assert payloads.read(NAME, 0, 100) == b"first"


def test_blocks_are_made_while_they_are_sent(payloads: PayloadStore) -> None:
    made = iter([b"0123", b"456"])
    assert payloads.put(NAME, made) == 7
    assert payloads.read(NAME, 0, 100) == b"0123456"


def test_a_link_names_the_object_and_makes_no_call(payloads: PayloadStore) -> None:
    """Also of what is not there (yet): signing asks nobody."""
    address = payloads.link("reports/j1/all.csv", file_name="j1-all.csv", seconds=900)
    assert "reports/j1/all.csv" in address
    assert "j1-all.csv" in address
    assert "900" in address
