"""The parts of the scenario keyset-traversal on the embedded engine: they find what they look for,
and what they judge by can fail. What needs a lagging index is in the scenario, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from handlers.jobs.selection import id_sources
from scripts.opensearch.embedded import EmbeddedSearch
from scripts.verify.indexed import Indexed, Refresh, Walked
from scripts.verify.keyset_traversal import (
    CHUNK,
    DELETING,
    SMALL,
    by_offset,
    different,
    guarded,
    once,
    shown,
    unguarded,
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedSearch(tmp_path_factory.mktemp("embedded")) as engine:
        yield engine.url


@pytest.fixture
def short_pages() -> Iterator[None]:
    with patch.object(id_sources, "QUERY_PAGE", CHUNK):
        yield


def test_each_record_once_at_every_boundary(url: str) -> None:
    counts = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK)
    seen = once(url, Refresh.EVERY_PAGE, counts, SMALL, CHUNK)
    assert seen.ok, seen.saw


@pytest.mark.usefixtures("short_pages")
def test_both_controls_show_the_harm(url: str) -> None:
    seen = [*by_offset(url), *unguarded(url)]
    assert len(seen) == 3
    assert [each for each in seen if not each.ok] == []


def test_the_guard_refuses_and_the_snapshot_is_exact(url: str) -> None:
    seen = [*guarded(url)]
    assert len(seen) == 2
    assert [each for each in seen if not each.ok] == []


def changed(walked: Walked, how: str) -> Walked:
    some = next(iter(walked.met))
    job = walked.job
    changes: dict[str, dict[str, Any]] = {
        "a record met twice": {"met": {**walked.met, some: 2}},
        "a record not met": {"met": {k: v for k, v in walked.met.items() if k != some}},
        "a record written twice": {"changed": {**walked.changed, some: 2}},
        "a record left": {"left": 1},
        "a document left": {"left_in_index": 1},
        "a skipped record": {"job": job.model_copy(update={"skipped": 1})},
        "a wrong total": {"job": job.model_copy(update={"total": 3})},
        "a set that did not shrink": {"seen": (walked.seen[0],) * len(walked.seen)},
    }
    return replace(walked, **changes[how])


@pytest.mark.usefixtures("short_pages")
def test_every_difference_is_one(url: str) -> None:
    count = 2 * CHUNK + 1
    indexed = Indexed(url, "judged", count, refresh=Refresh.EVERY_PAGE, limits=SMALL)
    walked = indexed.walk(DELETING)
    shows = shown(Refresh.EVERY_PAGE, count, CHUNK)
    assert different(walked, count, shows) == ""
    for how in (
        "a record met twice",
        "a record not met",
        "a record written twice",
        "a record left",
        "a document left",
        "a skipped record",
        "a wrong total",
        "a set that did not shrink",
    ):
        assert different(changed(walked, how), count, shows), how
