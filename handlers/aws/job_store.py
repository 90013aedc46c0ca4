"""The control table, and transactions over it and the record table, in DynamoDB."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from ..jobs.storage.validation import check_count, check_transaction
from ..jobs.words.errors import Reason, Refused, Why
from ..jobs.words.stored_values import BadValue
from ..jobs.words.writes import Check, Delete, Found, Index, Key, Page, Put, Table, Update
from .attributes import decode, encode
from .clients import retries_by_itself
from .errors import reading, writing
from .write_encoding import CONTROL_KEY, Calls, EncodedDelete, EncodedUpdate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from ..jobs.words.record_schema import RecordSchema
    from ..jobs.words.writes import Cursor, Item, Write
    from .write_encoding import Call

_VERBS: Final[Mapping[type[Write], str]] = {
    Put: "Put",
    Update: "Update",
    EncodedUpdate: "Update",
    Delete: "Delete",
    EncodedDelete: "Delete",
    Check: "ConditionCheck",
}


class DynamoStore:
    """``Store`` on DynamoDB. The indexes have to project all attributes."""

    def __init__(
        self,
        client: DynamoDBClient,
        *,
        control_table: str,
        records_table: str,
        schema: RecordSchema,
    ) -> None:
        self._client = client
        self._table = control_table
        self._calls = Calls({Table.CONTROL: control_table, Table.RECORDS: records_table}, schema)

    def get(self, key: Key) -> Item | None:
        with reading():
            answer = self._client.get_item(**self._calls.place(key), ConsistentRead=True)
        return self._item(key.table, answer["Item"]) if "Item" in answer else None

    def query(
        self,
        index: Index,
        partition: str,
        *,
        up_to: int | None = None,
        descending: bool = False,
        limit: int = 100,
        after: Cursor | None = None,
    ) -> Page:
        if up_to is not None and index is not Index.DUE:
            raise ValueError(f"index {index} is not sorted by a number")
        names, values = {"#pk": index.pk}, {":pk": partition}
        condition = "#pk = :pk"
        bound: dict[str, Any] = {}
        if up_to is not None:
            condition, names["#sk"], bound = condition + " AND #sk <= :sk", index.sk, {":sk": up_to}
        return self._query(
            limit,
            after,
            IndexName=index.value,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=encode({**values, **bound}),
            ScanIndexForward=not descending,
        )

    def count(self, index: Index, partition: str, *, before: str | int, at_most: int) -> int:
        check_count(index, before, at_most)
        counted = 0
        more: dict[str, Any] = {}
        while counted < at_most:
            with reading():
                answer = self._client.query(
                    TableName=self._table,
                    IndexName=index.value,
                    Select="COUNT",
                    KeyConditionExpression="#pk = :pk AND #sk < :sk",
                    ExpressionAttributeNames={"#pk": index.pk, "#sk": index.sk},
                    ExpressionAttributeValues=encode({":pk": partition, ":sk": before}),
                    Limit=at_most - counted,
                    **more,
                )
            counted += answer["Count"]
            last = answer.get("LastEvaluatedKey")
            if not last:
                break
            more = {"ExclusiveStartKey": last}
        return counted

    def query_partition(
        self, pk: str, *, sk_prefix: str, limit: int = 100, after: Cursor | None = None
    ) -> Page:
        values = {":pk": pk, ":prefix": sk_prefix} if sk_prefix else {":pk": pk}
        begins = " AND begins_with(sk, :prefix)" if sk_prefix else ""
        return self._query(
            limit,
            after,
            KeyConditionExpression=f"pk = :pk{begins}",
            ExpressionAttributeValues=encode(values),
            ConsistentRead=True,
        )

    def transact(self, action: str, writes: Sequence[Write]) -> None:  # noqa: ARG002 - for wrappers that log or interrupt by it
        check_transaction(writes)
        calls = self._made(writes)

        def item_at(position: int, item: Mapping[str, Any]) -> Item:
            return self._item(writes[position].key.table, item)

        retries = retries_by_itself(self._client)
        with writing(_suspects(writes), item_at, may_have_retried=retries):
            if len(writes) == 1 and _repeatable(writes[0]):
                self._single(writes[0], calls[0])
            else:
                # One token per transaction: what the SDK repeats after a lost reply is done once.
                self._client.transact_write_items(
                    TransactItems=_actions(writes, calls), ClientRequestToken=token_hex(16)
                )

    def actions(self, writes: Sequence[Write]) -> list[Any]:
        """The ``TransactItems`` that ``transact`` sends for these writes. Raises Refused."""
        return _actions(writes, self._made(writes))

    def _made(self, writes: Sequence[Write]) -> list[Call]:
        """The arguments of each write. Raises Refused, naming the writes that can't be made."""
        calls: list[Call] = []
        reasons: list[Reason | None] = []
        for write in writes:
            try:
                calls.append(self._calls.of(write))
                reasons.append(None)
            except BadValue as error:
                reasons.append(Reason(Why.INVALID, message=str(error)))
        if any(reasons):
            raise Refused(reasons)
        return calls

    def _single(self, write: Write, call: Call) -> None:
        match write:
            case Put():
                self._client.put_item(**call)
            case Update():
                self._client.update_item(**call)
            case _:
                self._client.delete_item(**call)

    def _query(self, limit: int, after: Cursor | None, **parameters: Any) -> Page:
        if limit < 1:
            raise ValueError(f"limit {limit} is not at least 1")
        if after is not None:
            parameters["ExclusiveStartKey"] = encode(after)
        with reading():
            answer = self._client.query(TableName=self._table, Limit=limit, **parameters)
        found = tuple(self._found(item) for item in answer["Items"])
        last = answer.get("LastEvaluatedKey")
        return Page(found, _cursor(last) if last else None)

    def _found(self, attributes: Mapping[str, Any]) -> Found:
        pk, sk = (attributes[name]["S"] for name in CONTROL_KEY)
        return Found(Key(pk, sk), self._item(Table.CONTROL, attributes))

    def _item(self, table: Table, attributes: Mapping[str, Any]) -> Item:
        key = self._calls.keys[table]
        return decode({name: value for name, value in attributes.items() if name not in key})


def _actions(writes: Sequence[Write], calls: Sequence[Call]) -> list[Any]:
    return [{_VERBS[type(write)]: call} for write, call in zip(writes, calls, strict=True)]


def _repeatable(write: Write) -> bool:
    """Whether the SDK may send it twice after a lost reply: then it needs no transaction's token.
    A counter would count twice, and a lone check has no call of its own."""
    return not isinstance(write, Check) and not (isinstance(write, Update) and write.add)


def _suspects(writes: Sequence[Write]) -> list[bool]:
    """Which writes can be to blame for a transaction that is too large: the team's records, whose
    size Fairlane does not choose, if there are any."""
    records = [write.key.table is Table.RECORDS for write in writes]
    return records if any(records) else [True] * len(writes)


def _cursor(key: Mapping[str, Any]) -> Cursor:
    return {
        name: value if isinstance(value, int) else str(value) for name, value in decode(key).items()
    }
