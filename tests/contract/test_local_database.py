"""The local AWS's database in a process of its own, with the tables that CloudFormation made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from scripts.local import ministack, tables
from scripts.local.clients import Clients
from scripts.local.deploy import Deployed, Resource
from scripts.local.errors import LocalError

TABLE: Final = "declared"
KEYS: Final = [
    {"AttributeName": "pk", "KeyType": "HASH"},
    {"AttributeName": "sk", "KeyType": "RANGE"},
]
ITEM: Final[dict[str, Any]] = {"pk": {"S": "a"}, "sk": {"S": "b"}, "who": {"S": "c"}}


def template(*indexes: str, attribute: str = "sk") -> str:
    keys = [KEYS[0], {**KEYS[1], "AttributeName": attribute}]
    names = dict.fromkeys(("pk", attribute, *indexes))
    properties: dict[str, Any] = {
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": keys,
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in names],
    }
    if indexes:
        properties["GlobalSecondaryIndexes"] = [
            {
                "IndexName": f"by-{name}",
                "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
            for name in indexes
        ]
    table = {"Type": "AWS::DynamoDB::Table", "Properties": properties}
    return json.dumps({"Resources": {"Table": table}})


def deployed() -> Deployed:
    found = {
        "Table": Resource(type="AWS::DynamoDB::Table", id=TABLE),
        "Queue": Resource(type="AWS::SQS::Queue", id="not-a-table"),
    }
    return Deployed(stack="s", outputs={}, resources=found)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    folder = tmp_path_factory.mktemp("aws")
    database, database_port = ministack.start_database(folder, lambda *_: None)
    try:
        aws, port = ministack.start(folder, lambda *_: None, database_port=database_port)
        try:
            yield port, database_port
        finally:
            ministack.stop(aws)
    finally:
        ministack.stop(database)


@pytest.fixture
def clients(ports: tuple[int, int]) -> Iterator[Clients]:
    made = Clients(*ports)
    made.cloudformation.create_stack(StackName="s", TemplateBody=template("who"))
    made.cloudformation.get_waiter("stack_create_complete").wait(StackName="s")
    yield made
    made.cloudformation.delete_stack(StackName="s")
    if TABLE in made.dynamodb.list_tables()["TableNames"]:
        made.dynamodb.delete_table(TableName=TABLE)


def indexes(clients: Clients) -> list[str]:
    table = clients.dynamodb.describe_table(TableName=TABLE)["Table"]
    return sorted(index["IndexName"] for index in table.get("GlobalSecondaryIndexes", []))


def test_the_database_gets_the_tables_that_were_declared(clients: Clients) -> None:
    assert clients.dynamodb.list_tables()["TableNames"] == []
    tables.put(clients, deployed())
    assert clients.dynamodb.list_tables()["TableNames"] == [TABLE]
    assert indexes(clients) == ["by-who"]


def test_a_later_deployment_keeps_the_data_and_adds_an_index(clients: Clients) -> None:
    tables.put(clients, deployed())
    clients.dynamodb.put_item(TableName=TABLE, Item={**ITEM, "what": {"S": "d"}})
    clients.cloudformation.update_stack(StackName="s", TemplateBody=template("who", "what"))
    clients.cloudformation.get_waiter("stack_update_complete").wait(StackName="s")
    tables.put(clients, deployed())
    assert indexes(clients) == ["by-what", "by-who"]
    found = clients.dynamodb.query(
        TableName=TABLE,
        IndexName="by-what",
        KeyConditionExpression="what = :d",
        ExpressionAttributeValues={":d": {"S": "d"}},
    )
    assert found["Count"] == 1


def test_a_table_with_another_key_is_not_taken_for_the_deployed_one(clients: Clients) -> None:
    clients.dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "other", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "other", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(LocalError, match="another key"):
        tables.put(clients, deployed())


def test_a_client_that_knows_one_address_reads_what_is_stored(clients: Clients) -> None:
    tables.put(clients, deployed())
    clients.dynamodb.put_item(TableName=TABLE, Item=ITEM)
    found = clients.declared.get_item(TableName=TABLE, Key={"pk": ITEM["pk"], "sk": ITEM["sk"]})
    assert found["Item"] == ITEM
    with pytest.raises(clients.declared.exceptions.ResourceNotFoundException):
        clients.declared.get_item(TableName="none", Key={"pk": {"S": "a"}})


def test_clients_find_both_addresses_in_the_environment() -> None:
    assert ministack.addresses(1, 2) == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:2",
    }
