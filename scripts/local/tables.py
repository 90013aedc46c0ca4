"""The tables that CloudFormation made, in the database that has a process of its own.

ministack ignores a template's time to live, so no row of a local stack expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TableDescriptionTypeDef

    from .deploy import Deployed

TYPES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")


class Databases(Protocol):
    @property
    def dynamodb(self) -> DynamoDBClient: ...
    @property
    def declared(self) -> DynamoDBClient: ...


def put(clients: Databases, deployed: Deployed) -> None:
    """Make what is not there yet of the deployed tables and their indexes. Raises LocalError when
    a table there is another one than was deployed."""
    there = set(clients.dynamodb.list_tables()["TableNames"])
    for resource in deployed.resources.values():
        if resource.type in TYPES:
            wanted = clients.declared.describe_table(TableName=resource.id)["Table"]
            if resource.id in there:
                _add_indexes(clients.dynamodb, wanted)
            else:
                _create(clients, wanted)


def _create(clients: Databases, wanted: TableDescriptionTypeDef) -> None:
    name = wanted["TableName"]
    indexes = [_index(index) for index in wanted.get("GlobalSecondaryIndexes", [])]
    more: dict[str, Any] = {"GlobalSecondaryIndexes": indexes} if indexes else {}
    clients.dynamodb.create_table(
        TableName=name,
        KeySchema=wanted["KeySchema"],
        AttributeDefinitions=wanted["AttributeDefinitions"],
        BillingMode="PAY_PER_REQUEST",
        **more,
    )


def _index(described: Any) -> dict[str, Any]:
    return {name: described[name] for name in ("IndexName", "KeySchema", "Projection")}


def _add_indexes(client: DynamoDBClient, wanted: TableDescriptionTypeDef) -> None:
    name = wanted["TableName"]
    table = client.describe_table(TableName=name)["Table"]
    if table["KeySchema"] != wanted["KeySchema"]:
        raise LocalError(f"the table {name} has another key than the deployed one")
    there = {index["IndexName"] for index in table.get("GlobalSecondaryIndexes", [])}
    for index in wanted.get("GlobalSecondaryIndexes", []):
        if index["IndexName"] not in there:
            client.update_table(
                TableName=name,
                AttributeDefinitions=wanted["AttributeDefinitions"],
                GlobalSecondaryIndexUpdates=[{"Create": _index(index)}],  # type: ignore[typeddict-item]  # a description has the same shape
            )
