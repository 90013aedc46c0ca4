"""Every ``aws`` command of docs/runbook.md, as it stands there, on the local stack.

The local AWS has no service quotas and takes a JSON filter pattern for any line, so the patterns
are held against the lines that the code logs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import ClientError, ParamValidationError

from scripts.local.stack import LocalStack
from tests.support.aws_command import NoSuchCommand, carry_out
from tests.support.pages import blocks

ROOT: Final = Path(__file__).parents[2]
RUNBOOK: Final = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
COMMANDS: Final = sorted(
    {
        line
        for block in blocks(RUNBOOK, "")
        for line in block.splitlines()
        if line.startswith("aws ")
    }
)
NOT_LOCAL: Final = {"aws service-quotas list-service-quotas --service-code dynamodb"}
"""The models alone judge it: tests/infra/test_runbook.py."""
OUTPUTS: Final = {
    "QUEUE_URL": "BulkQueueUrl",
    "SMALL_QUEUE_URL": "SmallQueueUrl",
    "CLUSTER": "BulkCluster",
    "SERVICE": "BulkService",
    "CONTROL_TABLE": "ControlTable",
    "RECORDS_TABLE": "RecordsTable",
    "IDEMPOTENCY_TABLE": "IdempotencyTable",
}
PARTS: Final = {
    "SMALL_LANE_FUNCTION": ("AWS::Lambda::Function", "SmallLane"),
    "RECOVERY_FUNCTION": ("AWS::Lambda::Function", "Recovery"),
    "RULE": ("AWS::Events::Rule", "EveryMinute"),
    "ACCESS_LOG_GROUP": ("AWS::Logs::LogGroup", "ApiAccessLogs"),
    "API_LOG_GROUP": ("AWS::Logs::LogGroup", "ApiLogs"),
    "AUTHORIZER_LOG_GROUP": ("AWS::Logs::LogGroup", "ApiAuthorizerLogs"),
    "SMALL_LANE_LOG_GROUP": ("AWS::Logs::LogGroup", "SmallLaneLogs"),
    "RECOVERY_LOG_GROUP": ("AWS::Logs::LogGroup", "RecoveryLogs"),
    "WORKER_LOG_GROUP": ("AWS::Logs::LogGroup", "BulkLaneLogs"),
}
"""A part of the deployment: its type, and what its logical id begins with."""
LINE: Final = "a line that says ERROR and BLOCK"

Run = Callable[[str], Mapping[str, Any]]


@pytest.fixture
def places(stack: LocalStack) -> dict[str, str]:
    """What the words in capitals stand for."""
    found = {word: stack.deployed.outputs[output] for word, output in OUTPUTS.items()}
    for word, (kind, part) in PARTS.items():
        [found[word]] = (
            each.id
            for name, each in stack.deployed.resources.items()
            if each.type == kind and part in name
        )
    task = f"arn:aws:ecs:us-east-1:000000000000:task/{found['CLUSTER']}/{'0' * 32}"
    return {**found, "RULE": found["RULE"].rpartition("/")[2], "TASK": task}


@pytest.fixture
def run(stack: LocalStack, places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, value in {**stack.credentials, **stack.addresses}.items():
        monkeypatch.setenv(name, value)

    client_of: Callable[[str], Any] = boto3.session.Session().client  # type: ignore[assignment]  # any service

    def carried_out(command: str) -> Mapping[str, Any]:
        words = re.sub(r"[A-Z_]{4,}", lambda word: places.get(word[0], word[0]), command)
        # The stack of the tests has another name than the one of the page.
        words = re.sub(r"\bFairlane\b", stack.deployed.stack, words)
        return carry_out(words, client_of)

    return carried_out


def test_the_commands_are_found() -> None:
    assert len(COMMANDS) >= 25
    assert set(COMMANDS) > NOT_LOCAL


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in NOT_LOCAL])
def test_a_command_answers(run: Run, command: str) -> None:
    answer = run(command)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


@pytest.mark.parametrize("pattern", ["ERROR", "BLOCK"])
def test_a_filter_of_words_finds_its_lines(
    stack: LocalStack, run: Run, places: dict[str, str], pattern: str
) -> None:
    logs = boto3.client("logs")
    [command, *_] = (each for each in COMMANDS if each.endswith(f"--filter-pattern {pattern}"))
    group = command.split()[command.split().index("--log-group-name") + 1]
    name = places.get(group, group.replace("Fairlane", stack.deployed.stack))
    logs.create_log_stream(logGroupName=name, logStreamName=f"runbook-{pattern}")
    lines = [{"timestamp": int(time.time() * 1000), "message": each} for each in (LINE, "INFO")]
    logs.put_log_events(logGroupName=name, logStreamName=f"runbook-{pattern}", logEvents=lines)
    found = [event["message"] for event in run(command)["events"]]
    assert LINE in found
    assert "INFO" not in found


@pytest.mark.parametrize("action", sorted(set(re.findall(r'\$\.action = "(\w+)"', RUNBOOK))))
def test_a_filter_of_an_action_names_one_that_is_logged(action: str) -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "handlers").rglob("*.py"))
    assert re.search(rf'log\(\s*"{action}"', code)


def test_a_command_that_is_wrong_is_seen(run: Run) -> None:
    with pytest.raises(NoSuchCommand):
        run("aws sqs explode")
    with pytest.raises(NoSuchCommand):
        run("aws sqs get-queue-attributes --sideways 1")
    with pytest.raises(ParamValidationError):
        run("aws ecs describe-services --cluster CLUSTER")
    with pytest.raises(ClientError, match="NonExistent"):
        run("aws sqs get-queue-attributes --queue-url QUEUE_URLS --attribute-names All")
