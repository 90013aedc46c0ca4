"""Where effects are looked at: a stack, a search engine behind a gate, a receiver of webhooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from opensearchpy import OpenSearch

from handlers.aws.record_store import DynamoRecordStore
from handlers.aws.runtime import SystemRuntime
from handlers.aws.search_mapping import index_body
from handlers.effects.documents import document_id
from handlers.effects.search_client import search_client
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from scripts.load.ledger import JobRow, Ledger
from scripts.local.errors import LocalError
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack
from scripts.opensearch.node import OpenSearchNode
from scripts.ops.drift import Sides, find

from .framework import Bench
from .outside import Gate, Receiver, Stop, serving, versions_in
from .site import stand_still

TENANT: Final = "shop"
FIELD: Final = "n"
RECORDS: Final = 200
CHUNK: Final = 20
INDEX: Final = "records"
SECRET: Final = "only-for-this-scenario"  # noqa: S105  it signs what goes from loopback to loopback
WITHIN_S: Final = 600
"""Far more than it takes: only what hangs runs into it."""
LOOK_S: Final = 0.5
SCHEMA: Final = RecordSchema()


def settings(search: str, webhook: str) -> Chosen:
    return {
        "limits": {"small_max_items": 1, "chunk_size": CHUNK},
        "timing": {
            "bulk": {"heartbeat": 1, "lease_ttl": 4, "visibility": 5},
            "effect_grace": 2,
            "effect_claim": 15,
            "effect_retry_base": 0.5,
            "effect_retry_cap": 2,
        },
        "bulk_lane": {"slots": 1, "poll_seconds": 1},
        "effects": {
            "search_url": search,
            "search_index": INDEX,
            "webhook_url": webhook,
            "webhook_secret": SECRET,
            "webhook_loopback": True,
        },
    }


@dataclass(frozen=True)
class Place:
    """A stack, and what is outside of it."""

    stack: LocalStack
    gate: Gate
    receiver: Receiver
    engine: OpenSearch
    early: list[str]
    """What was sent to the index before the table had it."""

    # --- the table ----------------------------------------------------------------------------

    @cached_property
    def ids(self) -> list[str]:
        return [f"record-{number:03}" for number in range(RECORDS)]

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.stack)

    @cached_property
    def records(self) -> DynamoRecordStore:
        return DynamoRecordStore(
            self.stack.clients.dynamodb,
            table=self.ledger.settings.records_table,
            schema=SCHEMA,
            runtime=SystemRuntime(),
        )

    def load(self) -> None:
        """Records at version 1 whose number is 0, and no document of any."""
        for id_ in self.ids:
            put(self, id_, version=1)

    def read(self) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for at in range(0, RECORDS, 100):
            found |= self.records.read(TENANT, self.ids[at : at + 100])
        return found

    def watch(self) -> None:
        """From now on, compare all that is sent to the index with the table at that moment."""
        known = self._documents

        def sees(writes: Sequence[tuple[str, int]]) -> None:
            wanted = {known[id_]: version for id_, version in writes if id_ in known}
            table = self.records.read(TENANT, list(wanted))
            self.early.extend(
                id_
                for id_, version in wanted.items()
                if id_ not in table or table[id_].version < version
            )

        self.gate.sees = sees

    @cached_property
    def _documents(self) -> dict[str, str]:
        """Record ids by the id of their document."""
        return {document_id(TENANT, id_): id_ for id_ in self.ids}

    def versions_in_table(self, ids: Sequence[str]) -> set[int]:
        return {record.version for record in self.records.read(TENANT, ids).values()}

    def sent(self, stop: Stop) -> list[str]:
        """The records whose documents are in the stopped request."""
        return [self._documents[id_] for id_, _ in versions_in(stop.body)]

    # --- the index ----------------------------------------------------------------------------

    def versions(self, ids: Sequence[str]) -> set[int]:
        """Of these documents, as they are now; 0 stands for one that is not there."""
        answer = self.engine.mget(
            body={"ids": [document_id(TENANT, id_) for id_ in ids]}, index=INDEX
        )
        return {doc["_source"]["version"] if doc["found"] else 0 for doc in answer["docs"]}

    @cached_property
    def sides(self) -> Sides:
        dynamodb, table = self.stack.clients.dynamodb, self.ledger.settings.records_table
        return Sides(TENANT, dynamodb, table, self.records, self.engine, INDEX, SCHEMA)

    def drift(self) -> int:
        """How many of all records and documents differ."""
        self.engine.indices.refresh(index=INDEX)
        return find(self.sides).total

    # --- jobs ---------------------------------------------------------------------------------

    def submit(self, operation: str, params: dict[str, Any]) -> str:
        body = {"operation": operation, "subject": "goods", "ids": self.ids, "params": params}
        answer = self.stack.api.call("POST", "/v1/jobs", tenant=TENANT, body=body)
        if answer.status != HTTPStatus.ACCEPTED:
            raise LocalError(f"POST /v1/jobs answered {answer.status}: {answer.body}")
        return str(answer.body["id"])

    def job(self, job_id: str) -> JobRow:
        return self.ledger.jobs()[job_id]

    def ended(self, job_id: str) -> JobRow:
        """Raises LocalError when it does not end in time."""
        self.until(f"job {job_id} ends", lambda: self.job(job_id).state.terminal)
        return self.job(job_id)

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            if time.monotonic() > deadline:
                raise LocalError(f"{what}: not within {WITHIN_S} s")
            self.recover()
            time.sleep(LOOK_S)

    def recover(self) -> None:
        """What the schedule does every minute."""
        [name] = [
            function["FunctionName"]
            for function in self.stack.clients.lambda_.list_functions()["Functions"]
            if "Recovery" in function["FunctionName"]
        ]
        self.stack.clients.lambda_.invoke(FunctionName=name, Payload=b"{}")

    def effect_rows(self, job_id: str) -> int:
        answer = self.stack.clients.dynamodb.query(
            TableName=self.ledger.settings.control_table,
            KeyConditionExpression="pk = :job AND begins_with(sk, :effect)",
            ExpressionAttributeValues={
                ":job": {"S": f"JOB#{job_id}"},
                ":effect": {"S": "EFFECT#"},
            },
            ConsistentRead=True,
            Select="COUNT",
        )
        return answer["Count"]


@contextmanager
def place(bench: Bench, name: str) -> Iterator[Place]:
    with ExitStack() as stack:
        node = stack.enter_context(OpenSearchNode(steps=bench.steps))
        gate, receiver = Gate(node.url), Receiver()
        stack.enter_context(serving(gate))
        stack.enter_context(serving(receiver))
        engine = stack.enter_context(search_client(node.url, credentials=None, region=None))
        engine.indices.create(index=INDEX, body=index_body(SCHEMA, {}))
        local = stack.enter_context(
            bench.stack(name, settings=settings(gate.url, receiver.url), workers=0, records=False)
        )
        here = Place(local, gate, receiver, engine, [])
        # When recovery runs is the scenario's to say.
        stand_still(local)
        here.load()
        yield here


def put(here: Place, id_: str, *, version: int) -> None:
    here.stack.clients.dynamodb.put_item(
        TableName=here.ledger.settings.records_table,
        Item={
            "tenant": {"S": TENANT},
            "id": {"S": id_},
            "version": {"N": str(version)},
            FIELD: {"N": "0"},
        },
    )
