"""Records in memory whose search index lives on a real node, and jobs that walk them.

The rules, the query adapter and the search sink are the ones that ship. Time is virtual for the
rules, so that effects can be let through at will, and real for the node.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from handlers.aws.search_mapping import index_body
from handlers.aws.search_query import RawNumbers, SearchQuery
from handlers.effects.documents import document, document_id
from handlers.effects.search_client import search_client
from handlers.effects.search_index import SearchIndex
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.filters import Filter
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import Count, Matches, RecordQuery, World
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.writes import Delete as Deletion
from handlers.jobs.words.writes import Table, Update, Write
from handlers.operations.registry import SEARCH_INDEX, all_operations
from handlers.testing.job_store import MemoryStore
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.runtime import ManualRuntime
from handlers.testing.telemetry import MemoryTelemetry
from scripts.local.errors import LocalError
from scripts.opensearch.node import OpenSearchNode

from .framework import Bench
from .site import TIMING

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from handlers.jobs.words.writes import Item

TENANT: Final = "acme"
SCHEMA: Final = RecordSchema()
ORDER: Final = "made"
FIELDS: Final = {"kind": "text", "price": "number", ORDER: "number"}
"""What the index takes, and queries may name."""
"""The field the index is walked by."""
LET_THROUGH_MS: Final = 5
MESSAGES: Final = 20
"""Deliveries after which a job that has not ended never will."""
LOADED_AT_ONCE: Final = 500


class Refresh(StrEnum):
    """When the index shows what was written to it."""

    EVERY_PAGE = "before each page"
    """So the set has shrunk as far as it can whenever it is looked at."""
    NEVER = "never"
    """So the whole walk sees the set as it was at first."""
    AS_IT_COMES = "every second"
    """OpenSearch's default."""


@dataclass(frozen=True)
class Walked:
    """What a job did, seen in the tables."""

    job: Job
    seen: Sequence[int]
    """Records in the index when each page was asked for."""
    met: Mapping[str, int]
    """How often each record was found by a page of the query."""
    changed: Mapping[str, int]
    """How often each record was written."""
    left: int
    """Records there are now."""
    left_in_index: int


class Indexed:
    """An index of its own with ``count`` records, in memory too, and everything a job needs.

    Seven records share each value of the order field; every fifth has none.
    """

    def __init__(
        self, url: str, name: str, count: int, *, refresh: Refresh, limits: Limits
    ) -> None:
        """url: of a search engine. name: of the index."""
        self.refresh = refresh
        self.client: OpenSearch = search_client(
            url, credentials=None, region=None, serializer=RawNumbers()
        )
        self.index = name
        self.runtime = ManualRuntime(0)
        self.store = _Noting()
        self.records = MemoryRecordStore(self.store)
        self.search = SearchQuery(self.client, self.index, SCHEMA, self.runtime, FIELDS, ORDER)
        self.limits = limits
        self._load({f"r{n:05}": _record(n) for n in range(count)})

    @cached_property
    def world(self) -> World:
        sink = SearchIndex(self.client, self.index, SCHEMA, self.runtime, FIELDS)
        return World(
            store=self.store,
            records=self.records,
            queues={lane: MemoryLaneQueue(self.runtime, name=lane.value) for lane in Lane},
            payloads=MemoryPayloadStore(),
            runtime=self.runtime,
            telemetry=MemoryTelemetry(),
            operations=all_operations(),
            timing=TIMING,
            limits=self.limits,
            sinks={SEARCH_INDEX: sink},
        )

    def walk(self, body: Mapping[str, Any], *, query: RecordQuery | None = None) -> Walked:
        """Ask for a job and work on it until it has ended. query: in place of the real adapter.
        Raises BadRequest; LocalError when it does not end."""
        watched = _Watched(self, query or self.search)
        world = replace(self.world, query=watched)
        request = accept(parse(json.dumps(body)), world.operations, max_ids=1)
        outcome = submit(world, TENANT, request)
        if not isinstance(outcome, Created):
            raise LocalError(f"no job was made: {outcome}")
        self.store.changed.clear()
        job = self._run(world, outcome.job)
        self.client.indices.refresh(index=self.index)
        return Walked(
            job=job,
            seen=tuple(watched.seen),
            met=dict(watched.met),
            changed=dict(self.store.changed),
            left=len(self.store.snapshot(Table.RECORDS)),
            left_in_index=self.in_index(),
        )

    def in_index(self) -> int:
        """Records it shows now."""
        return int(self.client.count(index=self.index)["count"])

    def let_through(self) -> None:
        """Let the effects of the chunks so far reach the index, and show them."""
        self.runtime.sleep(LET_THROUGH_MS)
        if self.refresh is Refresh.EVERY_PAGE:
            self.client.indices.refresh(index=self.index)

    def _run(self, world: World, job: Job) -> Job:
        queue = world.queues[job.lane]
        for _ in range(MESSAGES):
            for delivery in queue.receive(1, 20):
                apply_decision(queue, delivery, on_message(world, delivery, Worker("w")))
            now = read_job(world, job.id)
            if now is not None and now.state.terminal:
                return now
        raise LocalError(f"job {job.id} does not end")

    def _load(self, items: Mapping[str, Item]) -> None:
        interval = "1s" if self.refresh is Refresh.AS_IT_COMES else "-1"
        settings = {"index": {"number_of_replicas": 0, "refresh_interval": interval}}
        self.client.indices.create(
            index=self.index, body={**index_body(SCHEMA, FIELDS), "settings": settings}
        )
        self.records.load(TENANT, items)
        ids = list(items)
        for at in range(0, len(ids), LOADED_AT_ONCE):
            lines: list[str] = []
            for id_ in ids[at : at + LOADED_AT_ONCE]:
                lines += self._action(id_, items[id_])
            answer = self.client.bulk(body="\n".join(lines) + "\n", index=self.index)
            if answer["errors"]:
                raise LocalError("the index does not take the records")
        self.client.indices.refresh(index=self.index)

    def _action(self, id_: str, item: Item) -> tuple[str, str]:
        record = SCHEMA.record(TENANT, id_, item)
        meta = {
            "_id": document_id(TENANT, id_),
            "version": record.version,
            "version_type": "external_gte",
        }
        return json.dumps({"index": meta}), document(SCHEMA, record, FIELDS)


@contextmanager
def node(bench: Bench) -> Iterator[str]:
    """Address of a real node, empty, that is removed at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-node-") as folder,
        OpenSearchNode(Path(folder) / "node", steps=bench.steps) as here,
    ):
        yield here.url


def _record(number: int) -> Item:
    fields: dict[str, Any] = {"kind": "book", "price": number % 10, "version": 1}
    return fields if number % 5 == 0 else {**fields, ORDER: number // 7}


class _Noting(MemoryStore):
    """Counts the writes on each record."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: Counter[str] = Counter()

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        super().transact(action, writes)
        self.changed.update(
            write.key.sk
            for write in writes
            if write.key.table is Table.RECORDS and isinstance(write, Update | Deletion)
        )


@dataclass
class _Watched:
    """``RecordQuery`` that lets effects through before each page, and notes what the page holds."""

    here: Indexed
    query: RecordQuery

    def __post_init__(self) -> None:
        self.met: Counter[str] = Counter()
        self.seen: list[int] = []

    @property
    def sorts(self) -> frozenset[str]:
        return self.query.sorts

    @property
    def searchable(self) -> frozenset[str] | None:
        return self.query.searchable

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        self.here.let_through()
        self.seen.append(self.here.in_index())
        page = self.query.page(tenant, filter_, cursor, limit)
        self.met.update(match.id for match in page.found)
        return page

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        return self.query.count(tenant, filter_, at_most)
