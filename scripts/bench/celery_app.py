"""The tasks that the benches run in Celery: the database work of Fairlane's jobs, without the rest.

``python -m celery -A scripts.bench.celery_app worker`` serves it; its settings are variables, which
``celery_lanes`` gives it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from celery import Celery

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CHUNK: Final = 96
BROKER: Final = "BENCH_BROKER"
RECORDS: Final = "BENCH_RECORDS"
"""The table; it is keyed by tenant and id."""
FOLDER: Final = "BENCH_FOLDER"
"""For ``NOTED`` and ``STOP``."""
NOTED: Final = "noted.jsonl"
"""A line for each task that began, for each chunk, and for each task that ended or failed."""
STOP: Final = "stop"
"""While there is such a file, bulk tasks end at their next chunk."""
ONE_QUEUE: Final = "bench-all"
SMALL_QUEUE: Final = "bench-small"
BULK_QUEUE: Final = "bench-bulk"


def app_of(broker: str) -> Celery:
    """As a team would set it up for tasks of very different length on SQS."""
    made = Celery("bench", broker=broker)
    made.conf.update(
        task_acks_late=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "region": os.environ.get("AWS_DEFAULT_REGION", "us-east-1"),
            "is_secure": False,
            "visibility_timeout": 3600,
            "wait_time_seconds": 10,
            # Asks again at once. By default it waits for a second after every empty answer.
            "polling_interval": 0,
        },
    )
    return made


app = app_of(os.environ.get(BROKER, "sqs://"))


@app.task(name="small")  # type: ignore[untyped-decorator]  # Celery has no types
def small(task: str, tenant: str, first: int, count: int) -> None:
    """One transaction over so many records."""
    with _noted(task):
        add_one(_client(), os.environ[RECORDS], tenant, [_id(first + n) for n in range(count)])


@app.task(name="bulk")  # type: ignore[untyped-decorator]  # Celery has no types
def bulk(task: str, tenant: str, count: int) -> None:
    """Transaction after transaction."""
    stop = Path(os.environ[FOLDER], STOP)
    with _noted(task):
        for at in range(0, count, CHUNK):
            if stop.exists():
                break
            ids = [_id(number) for number in range(at, min(at + CHUNK, count))]
            add_one(_client(), os.environ[RECORDS], tenant, ids)
            _note(task, "chunk")


def add_one(client: DynamoDBClient, table: str, tenant: str, ids: list[str]) -> None:
    """Read the records, and write all of them or none, unless one was changed meanwhile; then
    again."""
    while True:
        keys = [{"tenant": {"S": tenant}, "id": {"S": id_}} for id_ in ids]
        read: dict[str, Any] = {table: {"Keys": keys, "ConsistentRead": True}}
        found = client.batch_get_item(RequestItems=read)["Responses"][table]
        try:
            client.transact_write_items(TransactItems=[_write(table, item) for item in found])
        except client.exceptions.TransactionCanceledException:
            continue
        return


def _write(table: str, item: Any) -> Any:
    n, version = int(item["n"]["N"]), int(item["version"]["N"])
    return {
        "Update": {
            "TableName": table,
            "Key": {"tenant": item["tenant"], "id": item["id"]},
            "UpdateExpression": "SET #n = :n, #v = :next",
            "ConditionExpression": "#v = :version",
            "ExpressionAttributeNames": {"#n": "n", "#v": "version"},
            "ExpressionAttributeValues": {
                ":n": {"N": str(n + 1)},
                ":next": {"N": str(version + 1)},
                ":version": {"N": str(version)},
            },
        }
    }


@cache
def _client() -> DynamoDBClient:
    """One for each process, made by the first task."""
    return boto3.client("dynamodb")


def _id(number: int) -> str:
    return f"record-{number:05}"


@contextmanager
def _noted(task: str) -> Iterator[None]:
    _note(task, "began")
    try:
        yield
    except BaseException:
        _note(task, "failed")
        raise
    _note(task, "ended")


def _note(task: str, what: str) -> None:
    line = json.dumps({"task": task, "what": what, "at": time.time() * 1000, "pid": os.getpid()})
    # One write to a file opened for appending: lines of several processes do not mix.
    with Path(os.environ[FOLDER], NOTED).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
