"""The adapters on moto, inside this process, or on the local AWS beside it: both with the same
schema as the deployed tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import boto3
import urllib3
from botocore.stub import Stubber
from moto import mock_aws

from handlers.aws.clients import config
from handlers.aws.job_store import DynamoStore
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.aws.payload_store import S3PayloadStore
from handlers.aws.record_store import DynamoRecordStore
from handlers.aws.runtime import SystemRuntime
from handlers.aws.table_query import TableQuery
from handlers.aws.upload_store import S3UploadStore
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.writes import Index
from scripts.local import ministack as local
from tests.support import moto_answers, moto_transactions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

    from handlers.jobs.words.job import Lane
    from handlers.jobs.words.ports import Runtime
    from handlers.jobs.words.timing import LaneTiming

REGION: Final = "eu-west-1"
CONTROL: Final = "control"
RECORDS: Final = "records"
BUCKET: Final = "payloads"


@dataclass(frozen=True)
class Clients:
    dynamodb: DynamoDBClient
    sqs: SQSClient
    s3: S3Client


@cache
def clients() -> Clients:
    """Clients as a deployment makes them; moto answers them only inside ``moto()``."""
    return Clients(
        dynamodb=boto3.client("dynamodb", region_name=REGION, config=config()),
        sqs=boto3.client("sqs", region_name=REGION, config=config(long_poll=True)),
        s3=boto3.client("s3", region_name=REGION, config=config(signature="s3v4")),
    )


@contextmanager
def moto(schema: RecordSchema | None = None) -> Iterator[Clients]:
    """An empty AWS with both tables and the bucket. schema: the names of the record table."""
    moto_answers.correct()
    moto_transactions.correct()
    with mock_aws():
        made = clients()
        create_tables(made.dynamodb, schema)
        made.s3.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        yield made


@contextmanager
def ministack(port: int) -> Iterator[Clients]:
    """The local AWS on this port, emptied, with both tables and the bucket."""
    urllib3.request("POST", f"{local.endpoint(port)}/_ministack/reset", retries=False)
    made = _clients_of(port)
    create_tables(made.dynamodb)
    made.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    yield made


@cache
def _clients_of(port: int) -> Clients:
    session, url = boto3.Session(region_name=REGION), local.endpoint(port)
    return Clients(
        dynamodb=session.client("dynamodb", endpoint_url=url, config=config()),
        sqs=session.client("sqs", endpoint_url=url, config=config(long_poll=True)),
        s3=session.client("s3", endpoint_url=url, config=config(signature="s3v4")),
    )


@contextmanager
def stubbed(client: Any) -> Iterator[Stubber]:
    """Answer the client's calls from a list, all of which have to be made."""
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


def create_tables(client: DynamoDBClient, schema: RecordSchema | None = None) -> None:
    """The control table with its indexes, and a record table."""
    schema = schema or RecordSchema()
    sorts = {index: "N" if index is Index.DUE else "S" for index in Index}
    attributes = {"pk": "S", "sk": "S"}
    for index in Index:
        attributes |= {index.pk: "S", index.sk: sorts[index]}
    client.create_table(
        TableName=CONTROL,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_keys("pk", "sk"),
        AttributeDefinitions=_types(attributes),
        GlobalSecondaryIndexes=[
            {
                "IndexName": index.value,
                "KeySchema": _keys(index.pk, index.sk),
                "Projection": {"ProjectionType": "ALL"},
            }
            for index in Index
        ],
    )
    client.create_table(
        TableName=RECORDS,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_keys(schema.tenant, schema.id),
        AttributeDefinitions=_types({schema.tenant: "S", schema.id: "S"}),
    )


def create_queue(client: SQSClient, name: str = "queue", *, visibility: int = 3600) -> str:
    """A standard queue; returns its address. visibility: seconds."""
    answer = client.create_queue(QueueName=name, Attributes={"VisibilityTimeout": str(visibility)})
    return answer["QueueUrl"]


def create_lane(client: SQSClient, lane: Lane, times: LaneTiming) -> str:
    """A lane's queue with its dead-letter queue ``<lane>-dlq``; returns the queue's address."""
    dead = create_queue(client, f"{lane}-dlq", visibility=times.visibility)
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    redrive = {
        "deadLetterTargetArn": arn["QueueArn"],
        "maxReceiveCount": times.max_receive_count,
    }
    url = create_queue(client, lane.value, visibility=times.visibility)
    client.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(redrive)})
    return url


def job_store(made: Clients, schema: RecordSchema | None = None) -> DynamoStore:
    return DynamoStore(
        made.dynamodb,
        control_table=CONTROL,
        records_table=RECORDS,
        schema=schema or RecordSchema(),
    )


def record_store(
    made: Clients, runtime: Runtime | None = None, schema: RecordSchema | None = None
) -> DynamoRecordStore:
    return DynamoRecordStore(
        made.dynamodb,
        table=RECORDS,
        schema=schema or RecordSchema(),
        runtime=runtime or SystemRuntime(),
    )


def payload_store(made: Clients) -> S3PayloadStore:
    return S3PayloadStore(made.s3, BUCKET, prefix="payloads/")


def upload_store(made: Clients, *, max_bytes: int = 10 * 1024**2) -> S3UploadStore:
    return S3UploadStore(made.s3, BUCKET, max_bytes=max_bytes)


def table_query(made: Clients, schema: RecordSchema | None = None) -> TableQuery:
    return TableQuery(made.dynamodb, RECORDS, schema or RecordSchema())


def lane_queue(made: Clients, name: str = "queue") -> SqsLaneQueue:
    return SqsLaneQueue(made.sqs, create_queue(made.sqs, name))


def _keys(hash_name: str, range_name: str) -> list[Any]:
    return [
        {"AttributeName": hash_name, "KeyType": "HASH"},
        {"AttributeName": range_name, "KeyType": "RANGE"},
    ]


def _types(attributes: dict[str, str]) -> list[Any]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in attributes.items()]
