"""Records reach the table and the search index, and a file takes them out and in again."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from handlers.settings import EffectSettings
from scripts.local import index, records
from scripts.local.errors import LocalError
from scripts.opensearch.client import client_of
from scripts.opensearch.embedded import EmbeddedSearch
from tests.support import aws

EFFECTS = EffectSettings()
LINES = """{"tenant": "own", "id": "001", "name": "Zürich", "price": 1.25, "big": 9007199254740993}
{"tenant": "own", "id": "1", "version": 7, "tags": ["a", {"b": null}], "open": true}
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedSearch(tmp_path_factory.mktemp("search")) as search:
        yield search.url


@pytest.fixture
def url(engine: str) -> Iterator[str]:
    """Of an engine with an empty index."""
    index.create(engine, EFFECTS)
    yield engine
    with client_of(engine) as client:  # by its own name; the one that is known is an alias
        for name in client.indices.get_mapping(index=EFFECTS.search_index):
            client.indices.delete(index=name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text(LINES, encoding="utf-8")
    return path


def sources(url: str) -> dict[str, Any]:
    with client_of(url) as client:
        found = client.search(index=EFFECTS.search_index, body={"size": 100})
    return {hit["_source"]["id"]: hit["_source"] for hit in found["hits"]["hits"]}


@pytest.mark.parametrize("made", ["moto", "ministack"], indirect=True)
def test_what_was_loaded_comes_out_as_it_went_in(
    made: aws.Clients, file: Path, tmp_path: Path
) -> None:
    told: list[int] = []
    assert records.load(made.dynamodb, aws.RECORDS, records.read(file), loaded=told.append) == 2
    assert told == [2]
    items = {item["id"]: dict(item) for item in records.scan(made.dynamodb, aws.RECORDS)}
    assert items["001"] == {
        "tenant": "own",
        "id": "001",
        "version": 1,
        "name": "Zürich",
        "price": Decimal("1.25"),
        "big": 9007199254740993,
    }
    kept = tmp_path / "kept" / "records.jsonl"
    assert records.save(made.dynamodb, aws.RECORDS, kept) == 2
    assert [path.name for path in kept.parent.iterdir()] == ["records.jsonl"]

    def by_id(path: Path) -> list[Any]:
        return sorted(records.read(path), key=lambda item: item["id"]["S"])

    assert by_id(kept) == by_id(file)


def test_a_filled_index_holds_each_record_under_its_version(url: str) -> None:
    items: list[dict[str, Any]] = [
        {"tenant": "own", "id": "001", "version": 1, "name": "Zürich", "price": Decimal("1.25")},
        {"tenant": "own", "id": "1", "version": 7},
        {"tenant": "own", "id": "none", "name": "never touched"},
    ]
    told: list[int] = []
    assert index.fill(url, EFFECTS, items, filled=told.append) == 3
    assert told == [3]
    found = sources(url)
    assert {name: source["version"] for name, source in found.items()} == {
        "001": 1,
        "1": 7,
        "none": 0,
    }
    assert found["001"]["name"] == "Zürich"


def test_a_newer_document_stays(url: str) -> None:
    index.fill(url, EFFECTS, [{"tenant": "own", "id": "1", "version": 9, "name": "newer"}])
    index.fill(url, EFFECTS, [{"tenant": "own", "id": "1", "version": 8, "name": "older"}])
    assert sources(url)["1"]["name"] == "newer"


def test_a_record_the_index_refuses_is_named(url: str) -> None:
    """Of a field that was added to the mapping by hand."""
    with client_of(url) as client:
        by_hand = {"properties": {"mixed": {"type": "double"}}}
        client.indices.put_mapping(index=EFFECTS.search_index, body=by_hand)
    mixed = {"tenant": "own", "id": "mixed", "version": 1, "mixed": ["a", {"b": None}]}
    with pytest.raises(LocalError, match=r"the record 'mixed' of tenant 'own': .*--no-search"):
        index.fill(url, EFFECTS, [mixed])


def test_an_index_that_is_there_is_left_as_it_is(url: str) -> None:
    index.fill(url, EFFECTS, [{"tenant": "own", "id": "1", "version": 10, "name": "there"}])
    assert not index.create(url, EFFECTS)
    assert sources(url)["1"]["name"] == "there"


def test_an_index_for_other_fields_is_made_anew(tmp_path: Path) -> None:
    priced = EffectSettings(search_fields={"price": "number"})
    with EmbeddedSearch(tmp_path) as search:
        assert index.create(search.url, EFFECTS)
        assert index.create(search.url, priced)
        assert not index.create(search.url, priced)
        index.fill(search.url, priced, [{"tenant": "own", "id": "1", "price": Decimal("1.5")}])
        assert sources(search.url).keys() == {"1"}
