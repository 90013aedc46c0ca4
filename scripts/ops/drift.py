"""Whether the search index holds what the record table holds, one tenant at a time.

Both sides are walked in the order of the record ids and merged, so memory does not grow with them.
What differs is looked at again, on both sides as they are at that moment, before it counts: a walk
takes time, and a search shows a write only after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from handlers.effects.documents import document_id, existence
from handlers.jobs.words.errors import Transient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from opensearchpy import OpenSearch

    from handlers.jobs.words.ports import RecordStore
    from handlers.jobs.words.record_schema import RecordSchema

PAGE: Final = 1000
KEEP: Final = "10m"
"""How long the index keeps its snapshot between two pages."""
LOOK: Final = 100
"""Ids looked at again at once: what one read of the record store takes."""
SAMPLES: Final = 10

Versions: TypeAlias = Iterator[tuple[str, int]]
"""(record id, version) in the order of the ids' UTF-8 bytes."""


class Kind(StrEnum):
    MISSING = "missing"
    """A record without a document."""
    STALE = "stale"
    """A document of another version than its record."""
    EXTRA = "extra"
    """A document without a record."""


@dataclass(frozen=True)
class Difference:
    kind: Kind
    id: str
    table: int | None
    """The record's version."""
    index: int | None
    """The version that its document names."""


@dataclass
class Drift:
    """What was found, as counts and a few examples of each kind."""

    records: int = 0
    documents: int = 0
    counts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    samples: dict[Kind, list[Difference]] = field(
        default_factory=lambda: {kind: [] for kind in Kind}
    )

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def add(self, found: Difference) -> None:
        self.counts[found.kind] += 1
        if len(self.samples[found.kind]) < SAMPLES:
            self.samples[found.kind].append(found)


@dataclass(frozen=True)
class Sides:
    """A tenant's records and documents."""

    tenant: str
    dynamodb: DynamoDBClient
    table: str
    records: RecordStore
    client: OpenSearch
    index: str
    schema: RecordSchema

    def of_table(self) -> Versions:
        names = {"#t": self.schema.tenant, "#i": self.schema.id, "#v": self.schema.version}
        pages = self.dynamodb.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="#t = :t",
            ProjectionExpression="#i, #v",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":t": {"S": self.tenant}},
        )
        for page in pages:
            for item in page["Items"]:
                yield item[self.schema.id]["S"], _version(item.get(self.schema.version, {}))

    def of_index(self) -> Versions:
        pit = self.client.create_pit(index=self.index, params={"keep_alive": KEEP})["pit_id"]
        try:
            after: list[Any] = []
            while hits := self._page(pit, after):
                for hit in hits:
                    yield str(hit["sort"][0]), _whole(hit["_source"].get(self.schema.version))
                after = hits[-1]["sort"]
        finally:
            self.client.delete_pit(body={"pit_id": [pit]})

    def _page(self, pit: str, after: list[Any]) -> list[Any]:
        """The next hits. The client raises for a shard that does not answer."""
        body: dict[str, Any] = {
            "size": PAGE,
            "pit": {"id": pit, "keep_alive": KEEP},
            # What names no id is no document of a record.
            "query": {
                "bool": {
                    "filter": [
                        {"term": {self.schema.tenant: self.tenant}},
                        {"exists": {"field": self.schema.id}},
                    ]
                }
            },
            "sort": [{self.schema.id: "asc"}],
            "_source": [self.schema.version],
            "track_total_hits": False,
            **({"search_after": after} if after else {}),
        }
        params = {"allow_partial_search_results": "false"}
        return list(self.client.search(body=body, params=params)["hits"]["hits"])

    def now(self, ids: Sequence[str]) -> Iterator[Difference]:
        """What differs of these at this moment."""
        records = self.records.read(self.tenant, ids)
        documents = self._documents(ids)
        for id_ in ids:
            record = records.get(id_)
            version = None if record is None else record.version
            if (found := difference(id_, version, documents.get(id_))) is not None:
                yield found

    def _documents(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The versions of the documents that exist. Raises Transient when the index could not tell
        of one: it would count as missing."""
        answer = self.client.mget(
            body={"ids": [document_id(self.tenant, id_) for id_ in ids]},
            index=self.index,
            params={"_source_includes": self.schema.version},
        )
        documents: dict[str, int] = {}
        for id_, doc in zip(ids, answer["docs"], strict=True):
            there = existence(doc)
            if there is None:
                raise Transient(f"the index could not read the document of {id_!r}")
            if there:
                documents[id_] = _whole(doc["_source"].get(self.schema.version))
        return documents


def find(
    sides: Sides,
    found: Callable[[Difference], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Drift:
    """Walk both sides. found: told of each difference. progress: of each id looked at."""
    drift = Drift()
    doubtful = (id_ for id_, *_ in _differing(sides, drift, progress))
    while ids := list(islice(doubtful, LOOK)):
        for difference_ in sides.now(ids):
            drift.add(difference_)
            found(difference_)
    return drift


def _differing(
    sides: Sides, drift: Drift, progress: Callable[[int], None]
) -> Iterator[tuple[str, int | None, int | None]]:
    for id_, table, index in merge(sides.of_table(), sides.of_index()):
        drift.records += table is not None
        drift.documents += index is not None
        progress(1)
        if table != index:
            yield id_, table, index


def merge(table: Versions, index: Versions) -> Iterator[tuple[str, int | None, int | None]]:
    """(id, version in the table, version in the index) of every id on either side."""
    left, right = next(table, None), next(index, None)
    while left is not None or right is not None:
        # Code points are ordered as their UTF-8 bytes are.
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            yield left[0], left[1], None
            left = next(table, None)
        elif left is None or right[0] < left[0]:
            yield right[0], None, right[1]
            right = next(index, None)
        else:
            yield left[0], left[1], right[1]
            left, right = next(table, None), next(index, None)


def difference(id_: str, table: int | None, index: int | None) -> Difference | None:
    if table == index:
        return None
    kind = Kind.MISSING if index is None else Kind.EXTRA if table is None else Kind.STALE
    return Difference(kind, id_, table, index)


def _version(attribute: Mapping[str, Any]) -> int:
    """As ``RecordSchema`` reads it: 0 where there is none, -1 where it is no whole number."""
    if not attribute:
        return 0
    text = str(attribute.get("N", ""))
    return int(text) if text.removeprefix("-").isdecimal() else -1


def _whole(value: object) -> int:
    return value if type(value) is int else -1
