"""``fairlane aws-check`` on a local stack: what held, what only AWS can show, what is broken."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.jobs.words.states import State
from scripts.commands.aws_check import TENANT
from scripts.load.ledger import Ledger
from scripts.local import stack as local
from scripts.local.stack import LocalStack
from scripts.ops.on_aws import jobs, readings, run
from scripts.ops.on_aws.rows import Verdict

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ITEMS: Final = "150"
OF_JOBS: Final = (
    jobs.SMALL,
    jobs.UPLOAD,
    jobs.BULK,
    jobs.REPORT,
    jobs.CANCEL,
    jobs.REDRIVE,
    jobs.CHANGE,
    jobs.CLEAN,
)

Check = Callable[..., dict[str, str]]


@pytest.fixture
def check(stack: LocalStack, stacks: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Check]:
    """Runs the command; returns the verdict of each row."""
    monkeypatch.setattr(local, "LocalStack", functools.partial(LocalStack, root=stacks))
    before = dict(os.environ)

    def checked(status: int, *more: str) -> dict[str, str]:
        words = ["aws-check", "--name", stack.name, "--items", ITEMS, "--json", *more]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == status, done.output
        said: dict[str, Any] = json.loads(done.stdout)
        assert said["held"] is (status == 0)
        return {row["what"]: row["verdict"] for row in said["rows"]}

    yield checked
    os.environ.clear()
    os.environ.update(before)


def unfinished(stack: LocalStack) -> list[str]:
    rows = Ledger(stack).jobs().values()
    return [each.id for each in rows if each.tenant == TENANT and not each.state.terminal]


def letters(stack: LocalStack) -> int:
    urls = (stack.deployed.outputs[f"{lane}DeadLettersUrl"] for lane in ("Small", "Bulk"))
    return sum(depth_of(stack.clients.sqs, url) for url in urls)


def depth_of(sqs: SQSClient, url: str) -> int:
    answer = sqs.get_queue_attributes(
        QueueUrl=url,
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )
    return sum(map(int, answer["Attributes"].values()))


def test_everything_holds_and_nothing_is_left(stack: LocalStack, check: Check) -> None:
    before, known = letters(stack), set(Ledger(stack).jobs())
    said = check(0, "--records")
    held = dict.fromkeys((run.STACK, *OF_JOBS), Verdict.HELD)
    assert said == held | dict.fromkeys(readings.ALL, Verdict.ON_AWS)
    assert unfinished(stack) == []
    assert Ledger(stack).records({TENANT}) == {}
    assert letters(stack) == before
    jobs_of_it = [job for id_, job in Ledger(stack).jobs().items() if id_ not in known]
    ended = [job.state for job in jobs_of_it if job.tenant == TENANT]
    assert {state: ended.count(state) for state in ended} == {
        State.SUCCEEDED: 4,
        State.CANCELLED: 1,
        State.FAILED: 1,
    }


def test_a_lane_that_nobody_serves_and_a_queue_without_redrive_are_seen(
    stack: LocalStack, check: Check
) -> None:
    """The control. The job that waits for nobody is cancelled."""
    sqs, url = stack.clients.sqs, stack.deployed.outputs["BulkQueueUrl"]
    [mapping] = (
        each["UUID"]
        for each in stack.clients.lambda_.list_event_source_mappings()["EventSourceMappings"]
        if each["EventSourceArn"].endswith("-small")
    )
    policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]
    stack.clients.lambda_.update_event_source_mapping(UUID=mapping, Enabled=False)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": ""})
    try:
        said = check(1, "--patience", "3")
    finally:
        sqs.set_queue_attributes(
            QueueUrl=url, Attributes={"RedrivePolicy": policy["RedrivePolicy"]}
        )
        stack.clients.lambda_.update_event_source_mapping(UUID=mapping, Enabled=True)
    assert (said[jobs.SMALL], said[run.STACK]) == (Verdict.BROKEN, Verdict.BROKEN)
    small = [each for each in Ledger(stack).jobs().values() if each.subject.endswith("/small")]
    assert max(small, key=lambda each: each.created_at).state is State.CANCELLED
