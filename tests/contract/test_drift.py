"""Table and index compared: on moto and the embedded engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.aws.search_mapping import index_body
from handlers.effects.documents import document_id
from handlers.effects.search_client import search_client
from handlers.jobs.words.record_schema import RecordSchema
from scripts.opensearch.embedded import EmbeddedSearch
from scripts.opensearch.node import ADDRESS
from scripts.ops import drift
from scripts.ops.drift import Difference, Kind, Sides, find, merge
from tests.support import aws

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

TENANT: Final = "acme"
SCHEMA: Final = RecordSchema()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address given in the environment, or the embedded engine's."""
    if given := os.environ.get(ADDRESS):
        yield given
        return
    with EmbeddedSearch(tmp_path_factory.mktemp("search")) as running:
        yield running.url


@dataclass(frozen=True)
class Both:
    """Both sides, and ways to fill them."""

    sides: Sides
    client: OpenSearch

    def record(self, id_: str, version: int | None, tenant: str = TENANT) -> None:
        item = {"tenant": {"S": tenant}, "id": {"S": id_}}
        number = {} if version is None else {"version": {"N": str(version)}}
        aws.clients().dynamodb.put_item(TableName=aws.RECORDS, Item={**item, **number})

    def document(self, id_: str, version: int, tenant: str = TENANT) -> None:
        self.client.index(
            index=self.sides.index,
            id=document_id(tenant, id_),
            body={"tenant": tenant, "id": id_, "version": version},
        )

    def find(self) -> tuple[drift.Drift, list[Difference]]:
        self.client.indices.refresh(index=self.sides.index)
        found: list[Difference] = []
        return find(self.sides, found.append), found


@pytest.fixture
def both(engine: str) -> Iterator[Both]:
    index = f"records-{uuid4().hex}"
    with aws.moto() as made, search_client(engine, credentials=None, region=None) as client:
        client.indices.create(index=index, body=index_body(SCHEMA, {}))
        records = aws.record_store(made)
        sides = Sides(TENANT, made.dynamodb, aws.RECORDS, records, client, index, SCHEMA)
        yield Both(sides, client)


IDS: Final = ("007", "07", "7", "A", "a", "é", "\uffee", "\U0001f600", "a b", "a#b", "שלום")


def test_what_agrees_is_no_drift_in_whatever_alphabet(both: Both) -> None:
    for number, id_ in enumerate(IDS):
        both.record(id_, number)
        both.document(id_, number)
    seen, found = both.find()
    assert (seen.records, seen.documents, seen.total, found) == (len(IDS), len(IDS), 0, [])


def test_missing_stale_and_extra_are_told_apart(both: Both) -> None:
    for id_ in IDS:
        both.record(id_, 3)
        both.document(id_, 3)
    both.record("missing", 1)
    both.record("stale", 4)
    both.document("stale", 3)
    both.document("extra", 9)
    both.record("no version", None)
    both.document("no version", 0)
    seen, found = both.find()
    assert set(found) == {
        Difference(Kind.MISSING, "missing", 1, None),
        Difference(Kind.STALE, "stale", 4, 3),
        Difference(Kind.EXTRA, "extra", None, 9),
    }
    assert seen.counts == {Kind.MISSING: 1, Kind.STALE: 1, Kind.EXTRA: 1}


def test_other_tenants_are_nobodys_business(both: Both) -> None:
    both.record("a", 1, tenant="other")
    both.document("b", 1, tenant="other")
    seen, _ = both.find()
    assert (seen.records, seen.documents, seen.total) == (0, 0, 0)


def test_it_goes_over_many_pages(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "PAGE", 7)
    monkeypatch.setattr(drift, "LOOK", 3)
    for n in range(50):
        both.record(f"r{n:03}", 1)
        both.document(f"r{n:03}", 1 if n % 10 else 2)
    seen, found = both.find()
    assert (seen.records, seen.documents) == (50, 50)
    assert [one.id for one in found] == [f"r{n:03}" for n in range(0, 50, 10)]


def test_what_was_only_in_flight_does_not_count(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written between the two walks and the second look."""
    both.record("a", 2)
    both.document("a", 1)
    walk = Sides.of_index

    def meanwhile(self: Sides) -> drift.Versions:
        yield from walk(self)
        both.document("a", 2)

    monkeypatch.setattr(Sides, "of_index", meanwhile)
    seen, found = both.find()
    assert (seen.total, found) == (0, [])


VERSIONS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), st.integers(0, 3))


@given(VERSIONS, VERSIONS)
def test_a_merge_meets_every_id_once_in_the_order_of_its_bytes(
    table: dict[str, int], index: dict[str, int]
) -> None:
    def ordered(side: dict[str, int]) -> Iterator[tuple[str, int]]:
        return iter(sorted(side.items(), key=lambda entry: entry[0].encode()))

    merged = list(merge(ordered(table), ordered(index)))
    wanted = sorted({*table, *index}, key=str.encode)
    assert merged == [(id_, table.get(id_), index.get(id_)) for id_ in wanted]


def test_samples_are_few_and_counts_are_all() -> None:
    seen = drift.Drift()
    for n in range(100):
        seen.add(Difference(Kind.EXTRA, f"r{n}", None, 1))
    assert (seen.total, len(seen.samples[Kind.EXTRA])) == (100, drift.SAMPLES)
