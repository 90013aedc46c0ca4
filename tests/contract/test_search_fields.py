"""One index for all tenants, with declared fields: no tenant's records change what another one's
queries find, or what the index accepts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from handlers.aws.search_mapping import UNINDEXED, WrongIndex, create_index, index_body
from handlers.aws.search_query import SearchQuery
from handlers.effects.search_index import SearchIndex
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.errors import QueryRefused
from handlers.jobs.words.filters import Filter, matches
from handlers.jobs.words.operation import Record
from handlers.settings import EffectSettings, WorkSettings
from handlers.testing.runtime import ManualRuntime
from infra.settings import PRODUCTION_TIMING
from tests.support.engine import SCHEMA, engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opensearchpy import OpenSearch

FIELDS: Final = {"price": "number", "name": "text", "on": "boolean"}
OTHER: Final = "other"
TENANT: Final = "acme"
NEEDED: Final = (
    *("control_table", "records_table", "idempotency_table"),
    *("payload_bucket", "small_queue_url", "bulk_queue_url"),
)
"""Settings that have no default."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearch]:
    with engine(tmp_path_factory.mktemp("search")) as made:
        yield made


class Place:
    """An index with declared fields, as sink and as query."""

    def __init__(self, client: OpenSearch) -> None:
        self.client, self.index = client, f"records-{uuid4().hex}"
        create_index(client, self.index, SCHEMA, FIELDS)
        self.sink = SearchIndex(client, self.index, SCHEMA, ManualRuntime(), FIELDS)
        self.query = SearchQuery(client, self.index, SCHEMA, ManualRuntime(), FIELDS)

    def put(self, tenant: str, records: Mapping[str, Mapping[str, Any]]) -> None:
        """As effects write them; every record is taken."""
        sent = [
            Projection(id_, 1, Record(tenant, id_, 1, dict(fields)))
            for id_, fields in records.items()
        ]
        delivered = self.sink.deliver(Batch("job", 0, tenant, "op", sent))
        assert (delivered.again, delivered.refused) == (frozenset(), {})

    def candidates(self, tenant: str, *conditions: tuple[str, str, object]) -> set[str]:
        self.client.indices.refresh(index=self.index)
        return {each.id for each in self.query.page(tenant, of(*conditions), None, 1000).found}


def of(*conditions: tuple[str, str, object]) -> Filter:
    return Filter.model_validate(
        {"all": [{"field": field, "op": op, "value": value} for field, op, value in conditions]}
    )


@pytest.fixture
def place(client: OpenSearch) -> Place:
    return Place(client)


WORSE: Final[list[dict[str, Any]]] = [
    {f"field{n}": n for n in range(1200)},
    {"price": "cheap", "name": 5, "on": "yes"},
    {"price": {"of": "a map"}, "name": ["a", {"b": 1}], "on": [True]},
    {"price.deep": 1, "name.deep": "x", "": 1, " ": 1, ".": 1, "a..b": 1},
    {"name": "x" * 40_000, UNINDEXED: ["price"]},
]
"""What another tenant's records may hold."""


@pytest.mark.parametrize("worse", WORSE)
def test_c102_another_tenants_records_change_nothing(place: Place, worse: dict[str, Any]) -> None:
    place.put(OTHER, {"w": worse})
    before = place.client.indices.get_mapping(index=place.index)
    place.put(TENANT, {"a": {"price": 10, "name": "n"}, "b": {"price": 60}, "c": {"name": "other"}})
    assert place.candidates(TENANT, ("price", "lt", 50)) == {"a"}
    assert place.candidates(TENANT, ("name", "eq", "n")) == {"a"}
    assert place.candidates(TENANT, ("price", "exists", False)) == {"c"}
    assert place.client.indices.get_mapping(index=place.index) == before


@pytest.mark.parametrize("field", ["pri*", "*", "color", "price.of", "_id", UNINDEXED])
@pytest.mark.parametrize("op", ["exists", "eq", "ne", "prefix", "in", "lt"])
def test_c102_a_field_that_is_not_declared_is_refused(place: Place, field: str, op: str) -> None:
    value: object = {"exists": True, "in": ["x"]}.get(op, "x")
    with pytest.raises(QueryRefused, match="is not searchable; searchable are: name, on, price"):
        place.candidates(TENANT, (field, op, value))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([Decimal("0.1"), Decimal("1E+40"), Decimal("-2.5")]),
    st.sampled_from(["", "n", "no", "5", "true", "x" * 40_000]),
    st.sampled_from([[], ["n"], {"a": 1}]),
)
NAMES = st.sampled_from(sorted(FIELDS))
SCALARS = st.one_of(st.booleans(), st.integers(-5, 5), st.sampled_from(["n", "no", "5", "true"]))
CONDITIONS = st.one_of(
    st.tuples(NAMES, st.sampled_from(["eq", "ne"]), SCALARS),
    st.tuples(NAMES, st.just("in"), st.lists(SCALARS, min_size=1, max_size=3)),
    st.tuples(
        NAMES,
        st.sampled_from(["lt", "lte", "gt", "gte"]),
        st.one_of(st.integers(-5, 5), st.sampled_from(["n", "no"])),
    ),
    st.tuples(NAMES, st.just("prefix"), st.sampled_from(["n", "5"])),
    st.tuples(NAMES, st.just("exists"), st.booleans()),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(NAMES, VALUES), min_size=1, max_size=6),
    st.lists(CONDITIONS, min_size=1, max_size=3),
)
@example([{"name": ["n"]}], [("name", "exists", True)])
@example([{"on": None}, {}], [("on", "exists", False)])
@example([{"name": 5}, {"name": "5"}], [("name", "lt", 50)])
@example([{"price": "5"}, {"price": 5}], [("price", "eq", "5")])
@example([{"price": "5"}, {"price": 5}], [("price", "in", [5, "5"])])
@example([{"name": "x" * 40_000}], [("name", "prefix", "x")])
def test_c102_whatever_records_hold_no_record_that_matches_is_missed(
    place: Place, found: list[dict[str, Any]], conditions: list[tuple[str, str, object]]
) -> None:
    tenant = uuid4().hex
    records = {f"r{n}": fields for n, fields in enumerate(found)}
    place.put(tenant, records)
    wanted = {id_ for id_, fields in records.items() if matches(of(*conditions), fields)}
    assert wanted <= place.candidates(tenant, *conditions)


DYNAMIC: Final = index_body(SCHEMA, FIELDS)["mappings"] | {"dynamic": True}


@pytest.mark.parametrize(
    ("mappings", "why"),
    [
        (index_body(SCHEMA, {})["mappings"], "maps 'price' as nothing instead of double"),
        (DYNAMIC, "takes fields that are not in search_fields"),
        (None, "there is no search index"),
    ],
)
def test_c102_an_index_that_could_miss_records_is_neither_written_to_nor_asked(
    client: OpenSearch, mappings: dict[str, Any] | None, why: str
) -> None:
    """Such as one that version 0.1.0 made without declared fields."""
    index = f"records-{uuid4().hex}"
    if mappings is not None:
        client.indices.create(index=index, body={"mappings": mappings})
    sink = SearchIndex(client, index, SCHEMA, ManualRuntime(), FIELDS)
    with pytest.raises(WrongIndex, match=why):
        sink.deliver(Batch("job", 0, TENANT, "op", [Projection("a", 1, None)]))
    query = SearchQuery(client, index, SCHEMA, ManualRuntime(), FIELDS)
    cheap = of(("price", "lt", 50))
    with pytest.raises(QueryRefused, match=f"would miss records: .*{why}"):
        query.page(TENANT, cheap, None, 10)
    with pytest.raises(QueryRefused, match=f"would miss records: .*{why}"):
        query.count(TENANT, cheap, 10)


def test_c102_without_declared_fields_an_index_takes_whatever_comes_and_answers_nothing(
    client: OpenSearch,
) -> None:
    index = f"records-{uuid4().hex}"
    create_index(client, index, SCHEMA, {})
    sink = SearchIndex(client, index, SCHEMA, ManualRuntime(), {})
    for number, fields in enumerate([*WORSE, {"price": 10}]):
        records = [Projection(f"r{number}", 1, Record(TENANT, f"r{number}", 1, fields))]
        assert not sink.deliver(Batch("job", 0, TENANT, "op", records)).refused
    query = SearchQuery(client, index, SCHEMA, ManualRuntime(), {})
    with pytest.raises(QueryRefused, match=r"searchable are: none .*effects\.search_fields"):
        query.page(TENANT, of(("price", "lt", 50)), None, 10)


@pytest.mark.parametrize("name", ["", "a.b", "pri*", "_id", "a b", "é"])
def test_c102_a_name_that_means_more_to_an_index_cannot_be_declared(name: str) -> None:
    with pytest.raises(ValidationError):
        EffectSettings.model_validate({"search_fields": {name: "text"}})


def test_c102_queries_of_an_index_need_declared_fields() -> None:
    given_ = {
        **dict.fromkeys(NEEDED, "x"),
        "timing": PRODUCTION_TIMING,
        "effects": {"search_url": "https://search.example"},
        "query": {"source": "search"},
    }
    with pytest.raises(ValidationError, match="search needs effects_search_fields"):
        WorkSettings.model_validate(given_)


@pytest.mark.parametrize(("order", "taken"), [("price", True), (None, True), ("made", False)])
def test_c102_the_order_of_a_walk_is_a_declared_field(order: str | None, *, taken: bool) -> None:
    effects = {"search_url": "https://search.example", "search_fields": FIELDS}
    given_ = {
        **dict.fromkeys(NEEDED, "x"),
        "timing": PRODUCTION_TIMING,
        "effects": effects,
        "query": {"source": "search", "order_field": order},
    }
    with nullcontext() if taken else pytest.raises(ValidationError, match="made is not one of"):
        env = WorkSettings.model_validate(given_).to_env()
        assert WorkSettings.from_env(env).effects.search_fields == FIELDS
