"""The local stack comes up on free ports, keeps to itself, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import psutil
import pytest
from botocore.exceptions import ClientError

from scripts.local import airports, processes
from scripts.local.errors import AlreadyUp, LocalError, NotUp
from scripts.local.ministack import HOST
from scripts.local.processes import Process
from scripts.local.stack import LocalStack
from scripts.local.state import State


@pytest.fixture
def other(stacks: Path, stack: LocalStack) -> Iterator[LocalStack]:
    """A second stack beside the shared one, for tests that end it."""
    beside = LocalStack("other", root=stacks, records=False).up()
    try:
        yield beside
    finally:
        beside.down()


def pids(state: State) -> list[int]:
    """Of the processes that were started by the stack and still run."""
    processes = (*state.workers, *([state.aws] if state.aws else []))
    return [process.pid for process in processes if process.alive()]


def family(state: State) -> list[psutil.Process]:
    """The stack's processes and all they started."""
    parents = [psutil.Process(pid) for pid in pids(state)]
    return [*parents, *(child for parent in parents for child in parent.children(recursive=True))]


def finished(stack: LocalStack, tenant: str, job_id: str) -> dict[str, Any]:
    """The job when it has ended. The looks are counted only so that a stuck job ends the run."""
    for _ in range(3000):
        job: dict[str, Any] = stack.api.call("GET", f"/v1/jobs/{job_id}", tenant=tenant).body
        if job["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"):
            return job
        time.sleep(0.1)
    raise AssertionError(f"the job does not end: {job}")


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


LANES_TENANT = "e2e-lanes"


def test_a_small_and_a_bulk_job_run(stack: LocalStack) -> None:
    """The functions and the worker do run: what they do is tested elsewhere."""
    records = dict(list(airports.airports_by_tenant()["islands"].items())[:200])
    table = stack.deployed.outputs["RecordsTable"]
    airports.load(stack.clients.dynamodb, table, tenants={LANES_TENANT: records})
    ids_of_all = list(records)
    for subject, ids in (("small", ids_of_all[:3]), ("bulk", ids_of_all[3:])):
        answer = stack.api.call(
            "POST",
            "/v1/jobs",
            tenant=LANES_TENANT,
            body={
                "operation": "set_fields",
                "subject": subject,
                "params": {"fields": {"checked": True}},
                "ids": ids,
            },
        )
        assert answer.status == 202, answer.body
        assert answer.body["lane"] == subject
        done = finished(stack, LANES_TENANT, answer.body["id"])
        assert (done["state"], done["succeeded"]) == ("SUCCEEDED", len(ids))


def test_c88_a_job_is_where_its_answers_say(stack: LocalStack) -> None:
    """For a client that resolves the address in an answer against that of its request."""
    tenant, jobs = "e2e-url", f"{stack.api.url}/v1/jobs"
    params = {"fields": {"checked": True}}
    body = {"operation": "set_fields", "subject": "url", "params": params, "ids": ["none"]}
    made = stack.api.call("POST", "/v1/jobs", tenant=tenant, body=body)
    assert made.status == 202, made.body
    for reference in (made.body["url"], made.headers["location"]):
        where = urljoin(jobs, reference)
        assert where == f"{jobs}/{made.body['id']}"
        found = stack.api.call("GET", where.removeprefix(stack.api.url), tenant=tenant)
        assert (found.status, found.body["url"]) == (200, reference)
    [listed] = stack.api.call("GET", "/v1/jobs", tenant=tenant).body["jobs"]
    assert listed["url"] == made.body["url"]
    document = stack.api.call("GET", "/v1/openapi.json", tenant=tenant).body
    [server] = document["servers"]
    assert urljoin(jobs, server["url"]) == stack.api.url


def test_the_api_answers_a_tenant_with_a_token(stack: LocalStack) -> None:
    assert stack.api.call("GET", "/v1/jobs", tenant="e2e-list").status == 200


@pytest.mark.parametrize(
    "header", [{}, {"authorization": "Bearer nonsense"}, {"authorization": "nonsense"}]
)
def test_the_api_refuses_without_a_valid_token(stack: LocalStack, header: dict[str, str]) -> None:
    assert stack.api.call("GET", "/v1/jobs", headers=header).status in (401, 403)


def test_the_api_refuses_an_expired_token(stack: LocalStack) -> None:
    expired = stack.issuer.token("e2e", expires_in=-3600)
    answer = stack.api.call("GET", "/v1/jobs", headers={"authorization": f"Bearer {expired}"})
    assert answer.status in (401, 403)


def test_every_airport_is_a_record_of_its_tenant(stack: LocalStack) -> None:
    pages = stack.clients.dynamodb.get_paginator("scan").paginate(
        TableName=stack.deployed.outputs["RecordsTable"],
        ProjectionExpression="tenant, #version",
        ExpressionAttributeNames={"#version": "version"},
    )
    found = Counter(item["tenant"]["S"] for page in pages for item in page["Items"])
    expected = {tenant: len(some) for tenant, some in airports.airports_by_tenant().items()}
    assert {tenant: found[tenant] for tenant in expected} == expected
    assert sum(expected.values()) > 28_000


def test_a_worker_has_exactly_the_environment_of_its_task(stack: LocalStack) -> None:
    task = stack.clients.ecs.describe_task_definition(
        taskDefinition=stack.deployed.only("AWS::ECS::TaskDefinition")
    )["taskDefinition"]
    [container] = task["containerDefinitions"]
    declared = {entry["name"]: entry["value"] for entry in container["environment"]}
    worker = psutil.Process(stack.workers.running[0].pid)
    has = worker.environ()
    assert declared.items() <= has.items()
    assert {name for name in has if name.startswith("FAIRLANE_")} <= declared.keys()
    assert worker.cmdline()[1:] == [*container["entryPoint"], *container.get("command", [])][1:]


def test_a_transaction_token_stands_for_one_request(stack: LocalStack) -> None:
    """As on AWS, although the local AWS keeps a digest of the request only (``emulator``)."""
    dynamodb = stack.clients.dynamodb

    def add(value: str) -> None:
        dynamodb.transact_write_items(
            ClientRequestToken="e2e-token",
            TransactItems=[
                {
                    "Update": {
                        "TableName": stack.deployed.outputs["RecordsTable"],
                        "Key": {"tenant": {"S": "e2e-token"}, "id": {"S": "1"}},
                        "UpdateExpression": "ADD amount :value",
                        "ExpressionAttributeValues": {":value": {"N": value}},
                    }
                }
            ],
        )

    add("5")
    add("5")
    with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
        add("6")
    item = dynamodb.get_item(
        TableName=stack.deployed.outputs["RecordsTable"],
        Key={"tenant": {"S": "e2e-token"}, "id": {"S": "1"}},
    )["Item"]
    assert item["amount"] == {"N": "5"}


def test_workers_are_killed_and_started_again(stack: LocalStack) -> None:
    [extra] = stack.workers.start()
    assert extra.pid in pids(stack.folder.read())
    extra.kill()
    assert extra.wait(600) == -9
    assert extra.pid not in [worker.pid for worker in stack.workers.running]


def test_a_second_up_leaves_the_first_alone(stack: LocalStack, stacks: Path) -> None:
    before = stack.folder.read()
    with pytest.raises(AlreadyUp, match="already up"):
        LocalStack("shared", root=stacks).up()
    assert stack.folder.read() == before
    assert stack.api.call("GET", "/v1/jobs", tenant="e2e-list").status == 200


def test_another_command_attaches_to_a_running_stack(stack: LocalStack, stacks: Path) -> None:
    attached = LocalStack("shared", root=stacks).attach()
    assert attached.deployed == stack.deployed
    assert attached.api.call("GET", "/v1/jobs", tenant="e2e-list").status == 200


def test_two_stacks_share_nothing(stack: LocalStack, other: LocalStack) -> None:
    assert other.state.port != stack.state.port
    other.clients.s3.create_bucket(Bucket="only-in-other")
    with pytest.raises(ClientError, match=r"404|NoSuchBucket"):
        stack.clients.s3.head_bucket(Bucket="only-in-other")
    token_of_other = other.issuer.token("e2e")
    answer = stack.api.call(
        "GET", "/v1/jobs", headers={"authorization": f"Bearer {token_of_other}"}
    )
    assert answer.status in (401, 403)


def test_down_ends_what_was_started_and_only_that(stack: LocalStack, other: LocalStack) -> None:
    """Also when one of its processes is dead already."""
    of_the_first = family(stack.state)
    started = family(other.state)
    port = other.state.port
    assert len(started) > 2  # the local AWS, a worker, and functions
    other.workers.running[0].kill()
    other.down()
    assert [process for process in started if process.is_running()] == []
    assert not answers(port)
    assert not other.folder.path.exists()
    assert [process for process in of_the_first if not process.is_running()] == []
    with pytest.raises(NotUp, match="not up"):
        other.attach()
    assert other.down() == 0


def test_a_start_that_fails_half_way_leaves_nothing(stack: LocalStack, stacks: Path) -> None:
    """The stack fixture comes first, so that no process of its own appears in between."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    broken = LocalStack("broken", root=stacks, settings={"timing": {"takeover_grace": 1}})
    with pytest.raises(LocalError, match=r"takeover_grace = 1 must be greater than"):
        broken.up()
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    # The other stack's functions may have started meanwhile.
    assert after - before <= {process.pid for process in family(stack.state)}
    assert broken.folder.read() == State()


@pytest.fixture
def starting(stacks: Path) -> Iterator[tuple[subprocess.Popen[bytes], LocalStack, Process]]:
    """A command that is bringing up a stack and has just started its local AWS."""
    name = f"starting-{uuid.uuid4().hex[:8]}"
    program = (
        "import pathlib, sys; from scripts.local.stack import LocalStack; "
        "LocalStack(sys.argv[2], root=pathlib.Path(sys.argv[1])).up()"
    )
    stack = LocalStack(name, root=stacks)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(stacks), name], stderr=subprocess.DEVNULL
    ) as command:
        while (aws := stack.folder.read().aws) is None:
            assert command.poll() is None
            time.sleep(0.02)
        try:
            yield command, stack, aws
        finally:
            command.kill()
            command.wait()
            stack.down()


def test_an_interrupted_start_leaves_nothing(
    starting: tuple[subprocess.Popen[bytes], LocalStack, Process],
) -> None:
    command, stack, aws = starting
    command.send_signal(signal.SIGINT)
    assert command.wait() != 0
    assert not aws.alive()
    assert stack.folder.read() == State()


def test_down_ends_what_a_killed_start_left(
    starting: tuple[subprocess.Popen[bytes], LocalStack, Process],
) -> None:
    command, stack, aws = starting
    command.kill()
    command.wait()
    assert aws.alive()
    assert stack.down() == 2, "the local AWS and its database"
    assert not aws.alive()


def test_a_pid_that_is_somebody_elses_now_is_left_alone(stack: LocalStack) -> None:
    aws = stack.state.aws
    assert aws is not None
    reused = aws.model_copy(update={"started": aws.started - 60})
    assert not reused.alive()
    reused.kill()
    processes.stop([reused], grace=1)
    assert aws.alive()


def test_one_command_at_a_time(stack: LocalStack, stacks: Path) -> None:
    with stack.folder.exclusive(), pytest.raises(LocalError, match="another command"):
        LocalStack("shared", root=stacks).down()
    assert stack.folder.read().up
