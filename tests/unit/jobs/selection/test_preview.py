"""A preview says what a job would be over, and writes nothing."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.selection import upload_parser
from handlers.jobs.selection.preview import LOOKS, SAMPLE, Preview, preview
from handlers.jobs.selection.request import Unprocessable, accept, parse
from handlers.jobs.selection.upload_parser import BYTES_PER_LOOK, MAX_BLANK_LINES
from handlers.jobs.words.job import Lane
from handlers.jobs.words.upload import Format, UploadForm
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill
from tests.support.selections import ADD, GROUP, grouped, jsonl, upload
from tests.support.walks import walking_world

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def looked_at(world: MemoryWorld, **body: Any) -> Preview:
    before = world.store.snapshot(), world.payloads.names()
    content = parse(json.dumps({"subject": "products", **ADD, **body}))
    found = preview(world, TENANT, accept(content, world.operations, max_ids=1000))
    assert (world.store.snapshot(), world.payloads.names()) == before
    assert not any(queue.snapshot() for queue in world.queues.values())
    return found


def test_listed_ids_are_counted_once_and_shown_from_the_first() -> None:
    world = memory_world()
    ids = fill(world, 200)
    found = looked_at(world, ids=[*ids, ids[0]])
    assert (found.count, found.exact, found.duplicates, found.lane) == (200, True, 1, Lane.BULK)
    assert found.sample == tuple(ids[:SAMPLE])


def test_an_estimate_grows_with_the_records() -> None:
    world = memory_world()
    ids = fill(world, 192)
    few, many = (looked_at(world, ids=ids[:n]).estimate for n in (96, 192))
    assert few is not None
    assert many is not None
    assert many.write_units == 2 * few.write_units


def test_a_query_shows_matches_of_its_own_tenant_alone() -> None:
    world = memory_world()
    ids = grouped(world, 5)
    world.records.load("other", {"x": {"price": 10, "group": "g", "version": 1}})
    found = looked_at(world, query=GROUP)
    assert (found.count, set(found.sample)) == (5, set(ids))


def test_a_file_without_a_look_is_not_counted_and_its_first_ids_are_shown() -> None:
    world = walking_world()
    found = looked_at(world, upload_id=upload(world, jsonl(["b", "a", "b"])))
    assert (found.count, found.exact, found.sample) == (None, False, ("b", "a"))
    assert found.estimate is None


def test_a_file_that_cannot_be_read_is_the_requests_fault() -> None:
    world = memory_world()
    with pytest.raises(Unprocessable, match="line 1") as refused:
        looked_at(world, upload_id=upload(world, b"{not json\n"))
    assert refused.value.field == "upload_id"


LARGE_LINE = b'{"x": "' + b"y" * 100_000 + b'", "id": "a"}\n'


@pytest.mark.parametrize(
    ("line", "count"), [(b"\n", MAX_BLANK_LINES), (LARGE_LINE, 999)], ids=["blank", "large"]
)
def test_c105_a_preview_reads_a_bounded_part_of_a_file_that_hardly_has_ids(
    line: bytes, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = walking_world()
    form = UploadForm(format=Format.JSONL, gzip=True, column="id")
    file = upload(world, gzip.compress(line * count, 1), form)
    expanded = 0
    step = upload_parser._bounded

    def counted(blocks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
        nonlocal expanded
        for block in step(blocks, max_bytes):
            expanded += len(block)
            yield block

    monkeypatch.setattr(upload_parser, "_bounded", counted)
    assert looked_at(world, upload_id=file).sample == (() if line == b"\n" else ("a",))
    assert expanded <= (LOOKS + 1) * (BYTES_PER_LOOK + len(line))
