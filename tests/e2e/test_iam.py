"""IAM enforced: every program signs its calls as its own role, and the local AWS refuses what the
role's deployed policies do not allow.

One exercise has every program do its work. It passes as the stack is deployed, and the API and the
workers of both lanes fail when one of their grants is taken away. That each grant is needed by some
call, and none is too much, ``tests/infra/test_rights_used.py`` shows without a stack.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from fairlane_client import Client, NewJob, NewUpload
from fairlane_client.downloads import fetch
from handlers.jobs.words.states import State
from scripts.local import airports
from scripts.local.ministack import CREDENTIALS, REGION
from scripts.local.stack import LocalStack
from scripts.local.warming import look_up

TENANT: Final = "guarded"
RECORDS: Final = 450
REFUSED: Final = "AccessDenied"
END: Final = 600


@pytest.fixture(scope="module")
def enforced(stacks: Path) -> Iterator[LocalStack]:
    """A stack that enforces IAM, with records of one tenant."""
    with LocalStack("enforced", root=stacks, iam=True, records=False) as running:
        table = running.deployed.outputs["RecordsTable"]
        airports.load(running.clients.dynamodb, table, tenants={TENANT: records()})
        yield running


@pytest.fixture
def client(enforced: LocalStack) -> Iterator[Client]:
    with Client(enforced.api.url, enforced.issuer.token(TENANT)) as made:
        yield made


def records() -> dict[str, airports.Fields]:
    return dict(list(airports.airports_by_tenant()["europe"].items())[:RECORDS])


def change(subject: str, **which: Any) -> NewJob:
    params = {"fields": {"checked": subject}}
    return NewJob(operation="set_fields", subject=subject, params=params, **which)


def function(stack: LocalStack, part: str) -> str:
    """The name of the one function with this in its logical id."""
    [name] = [
        each.id
        for id_, each in stack.deployed.resources.items()
        if each.type == "AWS::Lambda::Function" and part in id_
    ]
    return name


def recovered(stack: LocalStack) -> dict[str, Any]:
    """What comes of one run of recovery."""
    name = function(stack, "RecoveryFunction")
    answer: Any = stack.clients.lambda_.invoke(FunctionName=name, Payload=b"{}")
    return dict(answer)


def log(stack: LocalStack) -> str:
    """What functions, workers and the local AWS said so far; the API's lines are not in there."""
    return "".join(file.read_text(errors="replace") for file in stack.folder.path.glob("*.log"))


def test_all_that_a_deployment_does_is_allowed(
    enforced: LocalStack, client: Client, tmp_path: Path
) -> None:
    ids = list(records())
    file = tmp_path / "ids.jsonl"
    file.write_text("".join(f"{json.dumps(id_)}\n" for id_ in ids))
    upload = client.upload(file, NewUpload(format="jsonl"))
    everyone = {"all": [{"field": "country", "op": "exists", "value": True}]}
    long_ids = [f"{number:0250}" for number in range(300)]
    jobs = [
        client.submit(change("few", ids=ids[:10])),
        client.submit(change("many", ids=ids[:300])),
        client.submit(change("file", upload_id=upload)),
        client.submit(change("query", query=everyone)),
        client.submit(change("kept in the bucket", ids=long_ids)),
        client.submit(NewJob(operation="delete_records", subject="last", params={}, ids=ids[-3:])),
    ]
    assert client.preview(change("looked at", ids=ids[:10])).lane == "small"
    ended = {job.subject: client.wait(job.id, timeout=END) for job in jobs}
    assert {job.state for job in ended.values()} == {State.SUCCEEDED}, ended
    assert ended["many"].succeeded == 300
    assert ended["last"].succeeded == 3

    fails = NewJob(
        operation="adjust_number", subject="fails", params={"field": "name", "add": 1}, ids=ids[:3]
    )
    failed = client.wait(client.submit(fails).id, timeout=END)
    assert len(list(client.items(failed.id, "failed"))) == 3
    again = client.retry(failed.id, failed_only=True)
    assert client.wait(again.id, timeout=END).failed == 3

    report = client.report(ended["many"].id)
    fetch(report, tmp_path / "report.csv", got=lambda _: None)
    held = client.submit(change("stopped", ids=ids[:400]))
    client.cancel(held.id)
    assert client.wait(held.id, timeout=END).state in (State.CANCELLED, State.SUCCEEDED)
    assert client.page().jobs
    assert client.subject("few").subject == "few"
    assert client.lanes()
    assert "FunctionError" not in recovered(enforced)
    assert REFUSED not in log(enforced)


# --- and without a grant it is not ------------------------------------------------------------


@contextmanager
def without(stack: LocalStack, role: str, action: str) -> Iterator[None]:
    """The role whose logical id begins so may not do this meanwhile."""
    iam: Any = boto3.client(
        "iam",
        endpoint_url=stack.endpoint,
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )
    [name] = [
        each.id
        for id_, each in stack.deployed.resources.items()
        if each.type == "AWS::IAM::Role" and id_.startswith(role)
    ]
    before = {
        policy: iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]
    }
    assert action in json.dumps(before)
    for policy, document in before.items():
        fewer = {**document, "Statement": list(lacking(document["Statement"], action))}
        iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(fewer))
    try:
        yield
    finally:
        for policy, document in before.items():
            iam.put_role_policy(
                RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(document)
            )


def lacking(statements: list[dict[str, Any]], action: str) -> Iterator[dict[str, Any]]:
    for statement in statements:
        actions = statement["Action"]
        listed = [actions] if isinstance(actions, str) else actions
        if left := [each for each in listed if each != action]:
            yield {**statement, "Action": left}


def the_api(stack: LocalStack) -> bool:
    body = change("refused", ids=["1"]).model_dump(exclude_none=True)
    return stack.api.call("POST", "/v1/jobs", tenant=TENANT, body=body).status >= 500


def the_small_lane(stack: LocalStack) -> bool:
    before = log(stack).count(REFUSED)
    failed = look_up(stack.clients, function(stack, "SmallLane"))["batchItemFailures"]
    return len(failed) == 1 and log(stack).count(REFUSED) > before


def a_worker(stack: LocalStack) -> bool:
    """Its slots long poll for a second, and then ask again."""
    before = log(stack).count(REFUSED)
    while log(stack).count(REFUSED) == before:
        assert stack.workers.running
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(
    ("role", "action", "fails"),
    [
        ("ApiRole", "dynamodb:PutItem", the_api),
        ("SmallLaneRole", "dynamodb:GetItem", the_small_lane),
        ("BulkLaneTaskTaskRole", "sqs:ReceiveMessage", a_worker),
    ],
)
def test_without_a_grant_something_fails(
    enforced: LocalStack, role: str, action: str, fails: Callable[[LocalStack], bool]
) -> None:
    with without(enforced, role, action):
        assert fails(enforced)
