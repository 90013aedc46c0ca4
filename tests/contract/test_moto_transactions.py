"""What corrects moto's transactions changes what they cost, and nothing of what they do."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table

from tests.support import aws, moto_transactions

ACTIONS: Final = 5
"""Of each table, in a transaction."""


@pytest.fixture
def made() -> Iterator[aws.Clients]:
    """Both tables, each with the rows that ``transact`` changes and one that it leaves."""
    with aws.moto() as made:
        for n in range(ACTIONS + 1):
            made.dynamodb.put_item(TableName=aws.CONTROL, Item={**key(aws.CONTROL, n), **row("0")})
            made.dynamodb.put_item(TableName=aws.RECORDS, Item={**key(aws.RECORDS, n), **row("0")})
        yield made


def key(table: str, n: int) -> dict[str, Any]:
    names = ("pk", "sk") if table == aws.CONTROL else ("tenant", "id")
    return {names[0]: {"S": f"p{n % 2}"}, names[1]: {"S": f"s{n}"}}


def row(value: str) -> dict[str, Any]:
    return {"n": {"N": value}, "nested": {"M": {"parts": {"L": [{"N": value}]}}}}


def transact(made: aws.Clients, value: str, *, refused: bool) -> None:
    """A put, a delete and updates of each table. refused: the last action's condition fails."""
    actions: list[Any] = []
    for table in (aws.CONTROL, aws.RECORDS):
        actions += [
            {"Put": {"TableName": table, "Item": {**key(table, 0), **row(value)}}},
            {"Delete": {"TableName": table, "Key": key(table, 1)}},
            *(update(table, n, value) for n in range(2, ACTIONS)),
        ]
    if refused:
        actions[-1]["Update"]["ConditionExpression"] = "attribute_not_exists(n)"
    made.dynamodb.transact_write_items(TransactItems=actions)


def update(table: str, n: int, value: str) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": table,
            "Key": key(table, n),
            "UpdateExpression": "SET n = :value, nested.parts[0] = :value",
            "ExpressionAttributeValues": {":value": {"N": value}},
        }
    }


def rows(made: aws.Clients) -> list[Any]:
    return [made.dynamodb.scan(TableName=name)["Items"] for name in (aws.CONTROL, aws.RECORDS)]


def test_a_refused_transaction_leaves_what_the_one_before_wrote(made: aws.Clients) -> None:
    new = rows(made)
    transact(made, "1", refused=False)
    before = rows(made)
    assert all(len(now) == len(old) - 1 for now, old in zip(before, new, strict=True))
    for _ in range(2):
        with pytest.raises(made.dynamodb.exceptions.TransactionCanceledException):
            transact(made, "2", refused=True)
        assert rows(made) == before
    transact(made, "3", refused=False)
    changed = [[each["n"]["N"] for each in table] for table in rows(made)]
    assert [sorted(table) for table in changed] == [["0", *["3"] * (ACTIONS - 1)]] * 2


@pytest.mark.parametrize(("corrected", "copies"), [(True, 1), (False, ACTIONS)])
def test_a_table_is_copied_once_in_a_transaction(
    made: aws.Clients, monkeypatch: pytest.MonkeyPatch, *, corrected: bool, copies: int
) -> None:
    """By moto itself once for each action: when it no longer is, the correction can go."""
    copied: list[str] = []

    def counted(value: Any) -> Any:
        if isinstance(value, Table):
            copied.append(value.name)
        return copy.deepcopy(value)

    if not corrected:
        itself = vars(DynamoDBBackend.transact_write_items)["__wrapped__"]
        monkeypatch.setattr(DynamoDBBackend, "transact_write_items", itself)
    monkeypatch.setattr(moto_transactions, "copy", SimpleNamespace(deepcopy=counted))
    transact(made, "1", refused=False)
    assert copied == [aws.CONTROL] * copies + [aws.RECORDS] * copies
