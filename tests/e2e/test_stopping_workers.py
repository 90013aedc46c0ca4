"""A bulk worker that is told to stop in the middle of a job: the real process, the real signal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from scripts.local.processes import Process
from scripts.local.stack import LocalStack

TENANT: Final = "stopping"
COUNT: Final = 3000
PATIENCE: Final = 600
"""Seconds until a test gives up; nothing is asserted about how long anything takes."""


@pytest.fixture(scope="module")
def alone(stacks: Path) -> Iterator[LocalStack]:
    """A stack whose only bulk workers are those a test starts."""
    with LocalStack("stopping", root=stacks, workers=0, records=False) as running:
        fill(running)
        yield running


def fill(stack: LocalStack) -> None:
    table = stack.deployed.outputs["RecordsTable"]
    for start in range(0, COUNT, 25):
        stack.clients.dynamodb.batch_write_item(
            RequestItems={
                table: [
                    {
                        "PutRequest": {
                            "Item": {
                                "tenant": {"S": TENANT},
                                "id": {"S": f"r{n:05}"},
                                "price": {"N": "10"},
                            }
                        }
                    }
                    for n in range(start, min(start + 25, COUNT))
                ]
            }
        )


def submit(stack: LocalStack) -> Any:
    body = {
        "operation": "adjust_number",
        "subject": "products",
        "params": {"field": "price", "add": 1},
        "ids": [f"r{n:05}" for n in range(COUNT)],
    }
    return stack.api.call("POST", "/v1/jobs", tenant=TENANT, body=body)


def look(stack: LocalStack, id_: str) -> Any:
    return stack.api.call("GET", f"/v1/jobs/{id_}", tenant=TENANT).body


def wait_for(stack: LocalStack, id_: str, states: set[str], *, done: int = 0) -> Any:
    """The job, once it is in one of the states with so many records settled."""
    for _ in range(PATIENCE * 20):
        shown = look(stack, id_)
        settled = shown["succeeded"] + shown["failed"] + shown["skipped"]
        if shown["state"] in states and settled >= done:
            return shown
        time.sleep(0.05)
    raise AssertionError(shown)


def prices(stack: LocalStack) -> dict[str, int]:
    """How many records have which price."""
    pages = stack.clients.dynamodb.get_paginator("query").paginate(
        TableName=stack.deployed.outputs["RecordsTable"],
        KeyConditionExpression="tenant = :tenant",
        ExpressionAttributeValues={":tenant": {"S": TENANT}},
    )
    counts: dict[str, int] = {}
    for page in pages:
        for item in page["Items"]:
            counts[item["price"]["N"]] = counts.get(item["price"]["N"], 0) + 1
    return counts


@pytest.fixture
def worker(alone: LocalStack) -> Process:
    [started] = alone.workers.start()
    return started


def test_c21_c24_sigterm_in_mid_job_keeps_the_checkpoint_and_exits_with_0(
    alone: LocalStack, worker: Process
) -> None:
    answer = submit(alone)
    assert answer.status == 202
    id_ = answer.body["id"]
    wait_for(alone, id_, {"RUNNING"}, done=1)
    worker.terminate()
    assert worker.wait(PATIENCE) == 0
    stopped = look(alone, id_)
    assert (stopped["state"], stopped["attempt"]) == ("QUEUED", 0)
    assert 0 < stopped["succeeded"] < COUNT
    # What is committed is what is counted: the records and the checkpoint agree.
    assert prices(alone) == {"11": stopped["succeeded"], "10": COUNT - stopped["succeeded"]}
    log = worker.tail(10_000)
    for action in ("worker_stopping", "attempt_given_back", "worker_stopped"):
        assert f'"action":"{action}"' in log
    # The subject stays the job's own, and its message is free at once.
    assert submit(alone).status == 409
    [received] = alone.clients.sqs.receive_message(
        QueueUrl=alone.deployed.outputs["BulkQueueUrl"], VisibilityTimeout=0, WaitTimeSeconds=0
    ).get("Messages", [])
    assert id_ in received["Body"]
    alone.workers.start()
    ended = wait_for(alone, id_, {"SUCCEEDED", "FAILED"})
    assert (ended["state"], ended["succeeded"], ended["attempt"]) == ("SUCCEEDED", COUNT, 1)
    assert prices(alone) == {"11": COUNT}
    assert submit(alone).status == 202
