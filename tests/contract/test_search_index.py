"""The search index on a real engine: what the sink relies on, and that the engine of the unit
tests means the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest

from handlers.aws.search_mapping import WrongIndex, create_index, index_body
from handlers.effects.documents import document_id
from handlers.effects.search_client import search_client
from handlers.effects.search_index import SearchIndex
from handlers.jobs.words.effect import Batch, Delivered, Projection
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.runtime import ManualRuntime
from scripts.opensearch.embedded import EmbeddedSearch
from scripts.opensearch.node import ADDRESS
from tests.support.index_model import Engine
from tests.support.search import Transport, sink_over

if TYPE_CHECKING:
    from pathlib import Path

    from opensearchpy import OpenSearch

    from handlers.jobs.words.writes import Value

TENANT: Final = "acme"
SCHEMA: Final = RecordSchema()
FIELDS: Final = {"price": "number"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address given in the environment, or the embedded engine's."""
    if given := os.environ.get(ADDRESS):
        yield given
        return
    with EmbeddedSearch(tmp_path_factory.mktemp("search")) as running:
        yield running.url


@pytest.fixture
def client(engine: str) -> Iterator[OpenSearch]:
    with search_client(engine, credentials=None, region=None) as made:
        yield made


@pytest.fixture
def real(client: OpenSearch) -> SearchIndex:
    index = f"records-{uuid4().hex}"
    client.indices.create(index=index, body=index_body(SCHEMA, FIELDS))
    return SearchIndex(client, index, SCHEMA, ManualRuntime(), FIELDS)


def there(id_: str, version: int, **fields: Value) -> Projection:
    return Projection(id_, version, Record(TENANT, id_, version, fields or {"n": version}))


def gone(id_: str, version: int) -> Projection:
    return Projection(id_, version, None)


def batch(*records: Projection) -> Batch:
    return Batch("job", 0, TENANT, "op", records)


def story() -> list[Callable[[dict[str, object]], Batch]]:
    """Deliveries one after another; each may write over what the last one called newer."""
    return [
        lambda _: batch(there("a", 5), there("b", 1)),
        lambda _: batch(there("a", 5), there("b", 2)),
        lambda _: batch(there("a", 4), gone("b", 1), gone("never", 3)),
        lambda newer: replace(batch(there("a", 1), gone("b", 1)), instead_of=newer),
        lambda _: batch(there("a", 5)),
        lambda _: batch(there("a", 6), there("b", 2), there("never", 2)),
        lambda newer: replace(batch(there("b", 2), there("never", 2)), instead_of=newer),
        lambda _: batch(gone("a", 6), gone("a2", 0)),
        lambda _: batch(there("a", 5), there("a2", 0)),
        lambda newer: replace(batch(there("a", 5)), instead_of=newer),
        lambda _: batch(there("a", 6)),
    ]


def told(sink: SearchIndex) -> list[tuple[set[str], set[str], dict[str, bool]]]:
    """What each delivery of the story led to."""
    results = []
    newer: dict[str, object] = {}
    for make in story():
        delivered: Delivered = sink.deliver(make(newer))
        newer = dict(delivered.newer)
        held = {id_: state is not None for id_, state in newer.items()}
        results.append((set(delivered.again), set(delivered.refused), held))
    return results


def test_the_engine_of_the_unit_tests_means_what_a_real_one_does(real: SearchIndex) -> None:
    engine = Engine(ManualRuntime())
    assert told(sink_over(Transport(engine))) == told(real)
    real.client.indices.refresh(index=real.index)
    hits = real.client.search(index=real.index, body={"query": {"match_all": {}}, "size": 100})
    found = {hit["_id"]: hit["_source"] for hit in hits["hits"]["hits"]}
    assert found == engine.documents()
    assert set(found) == {document_id(TENANT, id_) for id_ in ("a", "a2", "b", "never")}


def test_what_was_read_before_somebody_wrote_is_not_written_over(real: SearchIndex) -> None:
    real.deliver(batch(there("a", 5)))
    newer = real.deliver(batch(there("a", 1))).newer
    real.deliver(batch(there("a", 6)))
    late = real.deliver(replace(batch(there("a", 1)), instead_of=newer))
    assert late.newer.keys() == {"a"}
    source = real.client.get(index=real.index, id=document_id(TENANT, "a"))["_source"]
    assert source["version"] == 6


def test_a_value_that_does_not_fit_is_its_records_alone(real: SearchIndex) -> None:
    """Of a field that an operator added to the mapping by hand."""
    by_hand = {"properties": {"weight": {"type": "double"}}}
    real.client.indices.put_mapping(index=real.index, body=by_hand)
    delivered = real.deliver(batch(there("b", 1, weight={"of": "a map"}), there("c", 1, weight=2)))
    assert delivered.refused.keys() == {"b"}
    assert "weight" in delivered.refused["b"]
    assert not delivered.again
    assert real.client.exists(index=real.index, id=document_id(TENANT, "c"))


def test_whole_numbers_first_do_not_cut_the_decimals_that_follow(real: SearchIndex) -> None:
    real.deliver(batch(there("a", 1, price=1), there("b", 1, price=Decimal("1.75"))))
    real.client.indices.refresh(index=real.index)
    body = {"query": {"range": {"price": {"gt": "1.5", "lt": "1.9"}}}}
    hits = real.client.search(index=real.index, body=body)["hits"]["hits"]
    assert [hit["_source"]["id"] for hit in hits] == ["b"]


def keyword_is_missing(client: OpenSearch, index: str) -> None:
    """As the engine makes an index at the first write."""
    client.index(index=index, body={"tenant": TENANT, "id": "x", "version": 1})


def nothing(client: OpenSearch, index: str) -> None:
    """No index."""


def closed_type(client: OpenSearch, index: str) -> None:
    properties = {
        **index_body(SCHEMA, FIELDS)["mappings"]["properties"],
        "version": {"type": "keyword"},
    }
    client.indices.create(index=index, body={"mappings": {"properties": properties}})


@pytest.mark.parametrize("before", [nothing, keyword_is_missing, closed_type])
def test_c113_nothing_is_written_to_an_index_that_is_not_one_of_records(
    client: OpenSearch, before: Callable[[OpenSearch, str], None]
) -> None:
    index = f"records-{uuid4().hex}"
    before(client, index)
    sink = SearchIndex(client, index, SCHEMA, ManualRuntime(), FIELDS)
    mapping = client.indices.get_mapping(index=index, params={"ignore_unavailable": "true"})
    for _ in range(2):
        with pytest.raises(WrongIndex, match=f"search index '{index}'"):
            sink.deliver(batch(there("a", 1)))
    after = client.indices.get_mapping(index=index, params={"ignore_unavailable": "true"})
    assert after == mapping

    if not mapping:
        assert create_index(client, index, SCHEMA, FIELDS)
        assert not sink.deliver(batch(there("a", 1))).again
    with pytest.raises(WrongIndex) if mapping else nullcontext():
        assert not create_index(client, index, SCHEMA, FIELDS)


@pytest.mark.parametrize("alias", [True, False])
def test_c113_an_index_that_vanishes_is_not_made_again_by_a_write(
    client: OpenSearch, *, alias: bool
) -> None:
    """The engine is started again, empty, between two writes of one worker."""
    index = f"records-{uuid4().hex}"
    if alias:
        create_index(client, index, SCHEMA, FIELDS)
    else:
        client.indices.create(index=index, body=index_body(SCHEMA, FIELDS))
    sink = SearchIndex(client, index, SCHEMA, ManualRuntime(), FIELDS)
    assert not sink.deliver(batch(there("a", 1))).again
    client.indices.delete(index=f"{index}-000001" if alias else index)

    if alias:  # behind an alias the write itself refuses to make one
        assert sink.deliver(batch(there("a", 2))).again == {"a"}
    else:
        with pytest.raises(WrongIndex, match="there is no search index"):
            sink.deliver(batch(there("a", 2)))
    assert not client.indices.exists(index=index)
    create_index(client, index, SCHEMA, FIELDS)
    assert not sink.deliver(batch(there("a", 2))).again


def test_an_engine_that_is_gone_is_tried_again(tmp_path: Path) -> None:
    with EmbeddedSearch(tmp_path) as running:
        client = search_client(running.url, credentials=None, region=None)
    with client, pytest.raises(Transient):
        SearchIndex(client, "records", SCHEMA, ManualRuntime(), FIELDS).deliver(
            batch(there("a", 1))
        )
