"""Queries: every source finds the same records, each once, and goes on from any of its cursors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.aws import table_query
from handlers.aws.attributes import encode
from handlers.aws.search_query import SearchQuery
from handlers.jobs.words.errors import QueryRefused
from handlers.jobs.words.filters import Filter, matches
from handlers.jobs.words.ports import Count
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_query import MemoryRecordQuery
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.runtime import ManualRuntime
from tests.support import aws
from tests.support.engine import FIELDS, SCHEMA, engine, new_index, put_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opensearchpy import OpenSearch

    from handlers.jobs.words.ports import RecordQuery
    from handlers.jobs.words.writes import Item

GROUP: Final = Filter.model_validate({"all": [{"field": "group", "op": "eq", "value": "g"}]})
ORDER: Final = "made"


@dataclass(frozen=True)
class Source:
    """A query port, and a way to put records where it looks."""

    query: RecordQuery
    load: Callable[[str, Mapping[str, Item]], None]

    def walk(self, filter_: Filter, limit: int, tenant: str = "acme") -> list[str]:
        """Every id, page after page."""
        found: list[str] = []
        cursor: str | None = None
        for _ in range(10_000):
            page = self.query.page(tenant, filter_, cursor, limit)
            assert len(page.found) <= limit
            found += [each.id for each in page.found]
            if page.next is None:
                return found
            cursor = page.next
        raise AssertionError("the walk does not end")


@pytest.fixture(scope="session")
def search_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearch]:
    with engine(tmp_path_factory.mktemp("search")) as client:
        yield client


@pytest.fixture(params=["memory", "moto", "search", "ordered search"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    if request.param == "memory":
        store = MemoryStore()
        yield Source(MemoryRecordQuery(store), MemoryRecordStore(store).load)
    elif request.param == "moto":
        with aws.moto() as made:
            yield Source(aws.table_query(made), lambda t, records: put(made, t, records))
    else:
        client = request.getfixturevalue("search_client")
        with new_index(client) as index:
            order = ORDER if request.param == "ordered search" else None
            yield Source(
                SearchQuery(client, index, SCHEMA, ManualRuntime(), FIELDS, order),
                lambda t, records: put_documents(client, index, t, records),
            )


@pytest.fixture
def ordered(search_client: OpenSearch) -> Iterator[Source]:
    """A search that is walked by a field of the documents."""
    with new_index(search_client) as index:
        yield Source(
            SearchQuery(search_client, index, SCHEMA, ManualRuntime(), FIELDS, ORDER),
            lambda t, records: put_documents(search_client, index, t, records),
        )


def put(made: aws.Clients, tenant: str, records: Mapping[str, Item]) -> None:
    for id_, item in records.items():
        made.dynamodb.put_item(
            TableName=aws.RECORDS,
            Item=encode({**item, SCHEMA.tenant: tenant, SCHEMA.id: id_, SCHEMA.version: 1}),
        )


def group(count: int, **more: Any) -> dict[str, Item]:
    return {f"r{n:04}": {"group": "g", **more} for n in range(count)}


# --- walking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 21, 57])
def test_each_record_is_found_once(source: Source, count: int) -> None:
    source.load("acme", {**group(count), "x": {"group": "h"}, "y": {"other": 1}})
    source.load("other", {"r0000": {"group": "g"}, "z": {"group": "g"}})
    found = source.walk(GROUP, 10)
    assert sorted(found) == [f"r{n:04}" for n in range(count)]
    assert sorted(source.walk(GROUP, 10, "other")) == ["r0000", "z"]
    assert source.walk(GROUP, 10, "nobody") == []


def test_a_walk_goes_on_after_any_record(source: Source) -> None:
    source.load("acme", group(23))
    whole = source.walk(GROUP, 1000)
    first = source.query.page("acme", GROUP, None, 1000)
    assert [each.id for each in first.found] == whole
    for at, match in enumerate(first.found):
        page = source.query.page("acme", GROUP, match.cursor, 7)
        assert [each.id for each in page.found] == whole[at + 1 : at + 8]


IDS: Final = (
    "007",
    "07",
    "7",
    "1e5",
    " 7 ",
    "é",
    "e\u0301",
    "😀",
    "\uffff",
    "\u05d0",
    '"',
    "\\u0061",
)


def test_c55_ids_are_opaque(source: Source) -> None:
    source.load("acme", {id_: {"group": "g"} for id_ in IDS})
    assert sorted(source.walk(GROUP, 3)) == sorted(IDS)
    assert len(source.walk(GROUP, 1)) == len(IDS)


def test_c39_what_leaves_the_set_meanwhile_makes_the_walk_lose_nothing(source: Source) -> None:
    source.load("acme", group(35))
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = source.query.page("acme", GROUP, cursor, 10)
        found += [each.id for each in page.found]
        source.load("acme", {each.id: {"group": "done"} for each in page.found})
        if page.next is None:
            break
        cursor = page.next
    assert sorted(found) == [f"r{n:04}" for n in range(35)]
    assert source.walk(GROUP, 10) == []


def test_the_order_is_by_fields_that_it_names(source: Source) -> None:
    assert SCHEMA.id in source.query.sorts


# --- the order field of a search --------------------------------------------------------------


def test_c43_one_value_for_all_is_a_tie_that_the_id_breaks(ordered: Source) -> None:
    ordered.load("acme", group(250, made=1_700_000_000_000))
    found = ordered.walk(GROUP, 10)
    assert len(found) == len(set(found)) == 250


@pytest.mark.parametrize("value", [7, 2**62 + 1, Decimal("0.1"), "2026-01-01", -5])
def test_c43_records_without_the_order_field_are_visited_too(ordered: Source, value: Any) -> None:
    ordered.load("acme", {**group(20, made=value), **{f"x{n}": {"group": "g"} for n in range(5)}})
    found = ordered.walk(GROUP, 10)
    assert len(found) == len(set(found)) == 25
    for size in (1, 3, 20, 24, 25):
        assert ordered.walk(GROUP, size) == found


def test_c43_an_index_where_no_record_has_the_order_field(ordered: Source) -> None:
    ordered.load("acme", group(25))
    found = ordered.walk(GROUP, 10)
    assert found == sorted(found)
    assert len(found) == 25


def test_an_order_comes_before_the_ids(ordered: Source) -> None:
    ordered.load("acme", {f"r{n}": {"group": "g", "made": 100 - n} for n in range(9)})
    assert ordered.walk(GROUP, 2) == [f"r{n}" for n in reversed(range(9))]
    assert ordered.query.sorts == {ORDER, SCHEMA.id}


# --- what is found ----------------------------------------------------------------------------

RECORDS: Final[dict[str, Item]] = {
    "a": {"n": 1, "t": "x", "b": True},
    "b": {"n": 2, "t": "xy", "b": False},
    "c": {"n": Decimal("2.5"), "t": "Xy"},
    "d": {"n": -3, "t": "y", "b": True},
    "e": {"t": "é"},
    "f": {"n": 0, "t": ""},
    "g": {"n": Decimal("0.1"), "b": False},
}

FILTERS: Final[list[tuple[str, str, object]]] = [
    ("n", "eq", 2),
    ("n", "eq", Decimal("2.0")),
    ("n", "eq", Decimal("0.1")),
    ("n", "ne", 2),
    ("n", "in", [1, 2, 99]),
    ("n", "lt", 2),
    ("n", "lte", 2),
    ("n", "gt", Decimal("0.1")),
    ("n", "gte", Decimal("0.1")),
    ("n", "exists", True),
    ("n", "exists", False),
    ("t", "eq", "x"),
    ("t", "eq", "é"),
    ("t", "ne", "x"),
    ("t", "in", ["x", "y"]),
    ("t", "lt", "x"),
    ("t", "gte", "xy"),
    ("t", "gt", "y"),
    ("t", "prefix", "x"),
    ("t", "exists", False),
    ("b", "eq", True),
    ("b", "ne", True),
    ("b", "in", [False]),
    ("b", "exists", True),
    ("unknown", "eq", "x"),
    ("unknown", "ne", "x"),
    ("unknown", "exists", False),
]


@pytest.mark.parametrize(("field", "op", "value"), FILTERS)
def test_a_source_finds_what_matches(source: Source, field: str, op: str, value: object) -> None:
    """A search may find a little more at the edge of a number: the record is checked again."""
    source.load("acme", RECORDS)
    filter_ = Filter.model_validate({"all": [{"field": field, "op": op, "value": value}]})
    right = {id_ for id_, fields in RECORDS.items() if matches(filter_, fields)}
    found = set(source.walk(filter_, 3))
    assert right <= found
    at_the_edge = {id_ for id_ in found - right if RECORDS[id_].get(field) == value}
    assert found - right == at_the_edge
    if not (isinstance(source.query, SearchQuery) and op in {"lt", "gt"}):
        assert found == right


def test_a_few_records_far_apart_are_found_by_a_small_page(source: Source) -> None:
    others: dict[str, Item] = {f"a{n:03}": {"group": "h"} for n in range(300)}
    source.load("acme", {**others, "a150x": {"group": "g"}, "z": {"group": "g"}})
    assert [each.id for each in source.query.page("acme", GROUP, None, 1).found] == ["a150x"]


def test_all_conditions_count(source: Source) -> None:
    source.load("acme", RECORDS)
    filter_ = Filter.model_validate(
        {
            "all": [
                {"field": "n", "op": "gte", "value": 0},
                {"field": "t", "op": "prefix", "value": "x"},
                {"field": "b", "op": "ne", "value": False},
            ]
        }
    )
    assert source.walk(filter_, 10) == ["a"]


def test_numbers_that_a_double_cannot_tell_apart_are_not_lost(source: Source) -> None:
    n = 12_345_678_901_234_567_890
    source.load("acme", {"low": {"n": n}, "high": {"n": n + 1}})
    above = Filter.model_validate({"all": [{"field": "n", "op": "gt", "value": n}]})
    assert "high" in source.walk(above, 10)


# --- counting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "at_most", "answer"),
    [
        (0, 10, Count(0, exact=True)),
        (9, 10, Count(9, exact=True)),
        (10, 10, Count(10, exact=True)),
        (11, 10, Count(10, exact=False)),
        (57, 10, Count(10, exact=False)),
    ],
)
def test_a_count_is_exact_up_to_its_bound(
    source: Source, count: int, at_most: int, answer: Count
) -> None:
    source.load("acme", {**group(count), "x": {"group": "h"}})
    source.load("other", group(99))
    assert source.query.count("acme", GROUP, at_most) == answer


# --- the table's pages ------------------------------------------------------------------------


def test_c45_a_tenant_of_several_1_mb_pages_is_read_to_its_end() -> None:
    records = group(640, filler="x" * 4000)
    with aws.moto() as made:
        put(made, "acme", records)
        pages = count_pages(made)
        source = Source(aws.table_query(made), lambda *_: None)
        assert source.walk(GROUP, 1000) == list(records)
        assert len(pages) >= 3
        assert source.query.count("acme", GROUP, 10_000) == Count(640, exact=True)


def test_records_that_do_not_match_are_passed_in_bounded_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_query, "READ_AT_ONCE", 5)
    with aws.moto() as made:
        put(made, "acme", {**{f"a{n:03}": {"group": "h"} for n in range(200)}, **group(2)})
        source = Source(aws.table_query(made), lambda *_: None)
        page = source.query.page("acme", GROUP, None, 5)
        assert (page.found, page.next) == ([], json.dumps("a039"))
        assert source.walk(GROUP, 5) == ["r0000", "r0001"]


def count_pages(made: aws.Clients) -> list[str]:
    seen: list[str] = []
    events: Any = made.dynamodb.meta.events
    events.register("before-call.dynamodb.Query", lambda **_: seen.append("Query"))
    return seen


# --- refusals ---------------------------------------------------------------------------------


def test_an_index_that_does_not_exist_is_named(search_client: OpenSearch) -> None:
    query = SearchQuery(search_client, "no-such-index", SCHEMA, ManualRuntime(), FIELDS)
    with pytest.raises(QueryRefused, match="no-such-index"):
        query.page("acme", GROUP, None, 10)
    with pytest.raises(QueryRefused, match="no-such-index"):
        query.count("acme", GROUP, 10)
