"""C109: the policies in docs/operators.md suffice for what the commands call, and say no more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from scripts.commands import audit, dispatches, dlq, effects, events, rates, tenants
from tests.handlers.deployment import TENANT, Deployment, deployed
from tests.support import aws
from tests.support.operators import seen_by_operator

PAGE: Final = Path(__file__).parents[2] / "docs" / "operators.md"
TRANSACT: Final = {"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}
READING_THE_STACK: Final = {
    "cloudformation:DescribeStacks",
    "cloudformation:ListStackResources",
    "lambda:GetFunctionConfiguration",
}
"""What ``scripts.ops.deployment`` calls, which this test replaces."""


def policies() -> tuple[set[str], set[str]]:
    """The actions of both: for looking, and for changing."""
    look, change = (
        {
            action
            for statement in json.loads(text)["Statement"]
            for action in (
                [statement["Action"]]
                if isinstance(statement["Action"], str)
                else statement["Action"]
            )
        }
        for text in re.findall(r"^```json\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    )
    return look, change


def actions_of(call: str) -> set[str]:
    """The rights that a call needs. call: as in ``Deployment.counted``."""
    service, _, operation = call.partition(".")
    match service, operation:
        case "DynamoDB", "TransactWriteItems":
            return {f"dynamodb:{action}" for action in TRANSACT}
        case "SQS", "SendMessageBatch":
            return {"sqs:SendMessage"}
        case _:
            return {f"{service.lower()}:{operation}"}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setenv("COLUMNS", "300")
    with deployed(monkeypatch, limits=Limits()) as made:
        url = aws.create_queue(made.made.sqs, "dead", visibility=30)
        letters = SqsLaneQueue(made.made.sqs, url)
        here = seen_by_operator(made.world, dead_letters={Lane.SMALL: letters})
        for command in (audit, dispatches, dlq, effects, events, rates, tenants):
            monkeypatch.setattr(command, "deployment", lambda *_: here)
        ids = made.fill(1)
        failed = made.job(made.created(ids, "failed"))
        end_job(made.world, failed, Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED))
        for job_id in (failed.id, made.created(ids, "waits")):
            body = {"version": 1, "job_id": job_id, "lane": "small"}
            made.made.sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))
        made.made.sqs.send_message(QueueUrl=url, MessageBody="[not ours]")
        yield made


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_c109_the_policies_are_what_the_commands_call(site: Deployment) -> None:
    of = ("--tenant", TENANT)
    with site.counted() as looked:
        run("tenants", "show", *of)
        run("rates", "show")
        letters = json.loads(run("dlq", "list", "--json"))["dead_letters"]
        run("dlq", "list", "--aside")
        run("dispatches", "list")
        run("effects", "list")
        run("events", "list")
        run("audit")
    [foreign] = [row["message"] for row in letters if row["problem"]]
    with site.counted() as changed:
        run("tenants", "set", *of, "--small", "0", "--pause")
        run("tenants", "set", *of, "--small", "default", "--weight", "2")
        run("rates", "set", "--records-per-second", "5")
        run("dlq", "set-aside", "--message", foreign)
        run("dlq", "redrive")
        run("dispatches", "replay")
        run("effects", "replay")
        run("events", "replay")
    look, change = policies()
    needed = {action for call in looked for action in actions_of(call)}
    assert needed | READING_THE_STACK == look
    used = {action for call in changed for action in actions_of(call)}
    assert used - look <= change
    # Deleting the id list of a job that has ended: no job of this test has one.
    assert change - used == {"s3:DeleteObject"}
