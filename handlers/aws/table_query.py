"""Queries over the record table itself: a tenant's records in the order of their ids.

DynamoDB reads every record of the tenant and bills for it, whatever the filter; the answer is
never old. One call reads a few pages at most, so that a walk can be stopped in between.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..jobs.words.filters import matches
from ..jobs.words.ports import Count, Match, Matches
from .attributes import decode
from .errors import reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from ..jobs.words.filters import Filter
    from ..jobs.words.record_schema import RecordSchema

MAX_PAGES: Final = 8
"""Reads of up to 1 MB (DynamoDB Query) in one call for records."""
MAX_COUNT_PAGES: Final = 20
READ_AT_ONCE: Final = 1000
"""Records one of these reads looks at, if they are within 1 MB."""


@dataclass(frozen=True)
class TableQuery:
    """``RecordQuery`` on the record table."""

    client: DynamoDBClient
    table: str
    schema: RecordSchema

    @property
    def searchable(self) -> None:
        return None

    @property
    def sorts(self) -> frozenset[str]:
        return frozenset({self.schema.id})

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        after = None if cursor is None else str(json.loads(cursor))
        found: list[str] = []
        for _ in range(MAX_PAGES):
            read, after = self._read(tenant, filter_, after)
            found += read
            if len(found) > limit:
                found = found[:limit]
                after = found[-1]
            if after is None or len(found) == limit:
                break
        return Matches(
            [Match(id_, _cursor(id_)) for id_ in found], None if after is None else _cursor(after)
        )

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        number, after = 0, None
        for _ in range(MAX_COUNT_PAGES):
            read, after = self._read(tenant, filter_, after)
            number += len(read)
            if after is None:
                return Count(min(number, at_most), exact=number <= at_most)
            if number >= at_most:
                break
        return Count(min(number, at_most), exact=False)

    def _read(
        self, tenant: str, filter_: Filter, after: str | None
    ) -> tuple[Sequence[str], str | None]:
        """Matching ids among the next records, and where to go on."""
        names = {"#tenant": self.schema.tenant, "#id": self.schema.id}
        names |= {f"#f{n}": name for n, name in enumerate(sorted(filter_.fields))}
        more: Any = {} if after is None else {"ExclusiveStartKey": self._key(tenant, after)}
        with reading():
            answer = self.client.query(
                TableName=self.table,
                KeyConditionExpression="#tenant = :tenant",
                ProjectionExpression=", ".join(name for name in names if name != "#tenant"),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":tenant": {"S": tenant}},
                ConsistentRead=True,
                Limit=READ_AT_ONCE,
                **more,
            )
        last = answer.get("LastEvaluatedKey")
        found = [self._id(item) for item in answer["Items"] if self._matches(filter_, item)]
        return found, None if last is None else self._id(last)

    def _matches(self, filter_: Filter, item: Mapping[str, Any]) -> bool:
        fields = {n: v for n, v in decode(item).items() if n not in self.schema.reserved}
        return matches(filter_, fields)

    def _id(self, item: Mapping[str, Any]) -> str:
        return str(item[self.schema.id]["S"])

    def _key(self, tenant: str, record_id: str) -> dict[str, Any]:
        return {self.schema.tenant: {"S": tenant}, self.schema.id: {"S": record_id}}


def _cursor(record_id: str) -> str:
    return json.dumps(record_id)
