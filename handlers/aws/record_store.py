"""The team's own records in DynamoDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..jobs.storage.validation import MAX_SK_BYTES
from ..jobs.words.errors import Transient
from ..jobs.words.timing import backoff_ms
from ..jobs.words.writes import Table
from .attributes import decode, encode
from .errors import reading
from .write_encoding import Calls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from ..jobs.words.operation import Record
    from ..jobs.words.ports import Runtime
    from ..jobs.words.record_schema import RecordSchema
    from ..jobs.words.writes import Delete, Update, Value, Write
    from .attributes import Attributes

MAX_READ: Final = 100
TRIES: Final = 5
"""Answers in a row that bring no record at all before the read is given up."""
BASE: Final = 0.05
CAP: Final = 1.0
"""Seconds between such answers."""


class DynamoRecordStore:
    """``RecordStore`` on DynamoDB."""

    def __init__(
        self, client: DynamoDBClient, *, table: str, schema: RecordSchema, runtime: Runtime
    ) -> None:
        self._client = client
        self._table = table
        self._schema = schema
        self._runtime = runtime
        self._calls = Calls({Table.RECORDS: table}, schema)

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        wanted = [id_ for id_ in dict.fromkeys(ids) if 1 <= len(id_.encode()) <= MAX_SK_BYTES]
        if len(wanted) > MAX_READ:
            raise ValueError(f"{len(wanted)} ids in one read, not at most {MAX_READ}")
        keys: Sequence[Any] = [self._key(tenant, id_) for id_ in wanted]
        found: dict[str, Record] = {}
        fruitless = 0
        while keys:
            items, left = self._batch(keys)
            for item in items:
                record_id: str = item[self._schema.id]["S"]
                found[record_id] = self._schema.record(tenant, record_id, decode(item))
            fruitless = fruitless + 1 if len(left) == len(keys) else 0
            if fruitless == TRIES:
                raise Transient(f"{len(left)} records stay unread")
            if fruitless:
                self._runtime.sleep(self._backoff(fruitless))
            keys = left
        return found

    def change(self, record: Record, fields: Mapping[str, Value], job_id: str) -> Write:
        return self._encoded(self._schema.change(record, fields, job_id))

    def remove(self, record: Record, job_id: str) -> Write:
        return self._encoded(self._schema.remove(record, job_id))

    def _encoded(self, write: Update | Delete) -> Write:
        # A chunk may be read ahead here while another thread commits, and the database waits for
        # that thread: it gets the interpreter between two records, not after its 5 ms.
        self._runtime.sleep(0)
        return self._calls.ahead(write)

    def _key(self, tenant: str, record_id: str) -> Attributes:
        return encode({self._schema.tenant: tenant, self._schema.id: record_id})

    def _batch(self, keys: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The records that came, and the keys DynamoDB did not get to (16 MB, throttling)."""
        with reading():
            answer = self._client.batch_get_item(
                RequestItems={self._table: {"Keys": list(keys), "ConsistentRead": True}}
            )
        left = answer.get("UnprocessedKeys", {}).get(self._table, {"Keys": []})
        return answer["Responses"].get(self._table, []), left["Keys"]

    def _backoff(self, tries: int) -> int:
        return backoff_ms(tries, base=BASE, cap=CAP, random=self._runtime.random())
