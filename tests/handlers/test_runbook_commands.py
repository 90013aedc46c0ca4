"""Every ``fairlane`` command of docs/runbook.md, as it stands there, on a deployment with a dead
letter."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from fairlane_client.commands.exits import Exit
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import message_for
from tests.handlers.deployment import TENANT, Deployment
from tests.support import aws
from tests.support.operators import seen_by_operator

RUNBOOK: Final = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")
COMMANDS: Final = sorted(
    {
        line
        for block in re.findall(r"^```\n(.*?)^```", RUNBOOK, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.startswith("fairlane ") and not line.startswith("fairlane doctor ")
    }
)
"""``doctor`` looks at the stack itself: tests/e2e/test_doctor.py runs it on a local one."""
OVER_HTTP: Final = {"jobs", "lanes"}
"""They call the API; here nobody answers, and they say so."""


@pytest.fixture
def site(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    letters = {
        lane: SqsLaneQueue(
            stack.made.sqs, aws.create_queue(stack.made.sqs, f"{lane.value}-dead", visibility=30)
        )
        for lane in Lane
    }
    here = seen_by_operator(stack.world, dead_letters=letters)
    for module in ("dispatches", "dlq", "effects", "events", "tenants"):
        command = importlib.import_module(f"scripts.commands.{module}")
        monkeypatch.setattr(command, "deployment", lambda *_: here)
    job = stack.job(stack.created(stack.fill(1)))
    assert not letters[Lane.SMALL].send([message_for(job)])
    return stack


def test_the_commands_are_found() -> None:
    assert len(COMMANDS) >= 10
    assert {command.split()[1] for command in COMMANDS} >= {"dlq", "effects", "events", "tenants"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_it_says(site: Deployment, command: str) -> None:
    words = shlex.split(command)[1:]
    words = [{"TENANT": TENANT, "JOB": "0" * 32}.get(word, word) for word in words]
    if words[0] in OVER_HTTP:
        words += ["--url", "http://127.0.0.1:1/x", "--token", "t"]
    result = CliRunner().invoke(app, words)
    expected = Exit.UNREACHABLE if words[0] in OVER_HTTP else 0
    assert result.exit_code == expected, result.output
    assert result.output.strip()


def test_a_command_that_is_not_there_is_seen(site: Deployment) -> None:
    for wrong in (["dlq", "explode"], ["effects", "list", "--sideways"]):
        assert CliRunner().invoke(app, wrong).exit_code == 2
