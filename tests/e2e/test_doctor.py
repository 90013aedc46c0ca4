"""``fairlane doctor`` on a local stack: healthy as it was deployed, and what was broken by hand is
named."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from fairlane_client.commands.errors import CommandError
from scripts.local import stack as local
from scripts.local.stack import LocalStack

CHECKED: Final = {
    "bulk lane",
    "clean-up",
    "dead letters",
    "dispatches",
    "effects",
    "events",
    "grants",
    "held jobs",
    "recovery",
    "settings",
    "small lane",
    "stuck jobs",
    "tables",
    "the bulk lane's queue",
    "the small lane's queue",
    "timing",
    "versions",
}

Doctor = Callable[[int], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def patient(stacks: Path) -> Iterator[LocalStack]:
    with LocalStack("patient", root=stacks, workers=1, records=False) as running:
        yield running


@pytest.fixture
def doctor(patient: LocalStack, stacks: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Doctor]:
    """Runs the command; its argument is the expected exit status."""
    monkeypatch.setattr(local, "LocalStack", functools.partial(LocalStack, root=stacks))
    before = dict(os.environ)

    def look(status: int) -> list[dict[str, Any]]:
        done = CliRunner().invoke(app, ["doctor", "--name", patient.name, "--json"])
        assert done.exit_code == status, done.output
        said: dict[str, Any] = json.loads(done.stdout)
        assert said["healthy"] is (status == 0)
        found: list[dict[str, Any]] = said["findings"]
        return found

    yield look
    os.environ.clear()
    os.environ.update(before)


def wrong(findings: list[dict[str, Any]]) -> list[str]:
    return [each["what"] for each in findings if each["grade"] == "wrong"]


def test_a_stack_as_it_was_deployed_is_healthy(doctor: Doctor) -> None:
    findings = doctor(0)
    assert {each["check"] for each in findings} == CHECKED
    assert {each["grade"] for each in findings} == {"ok"}


def test_what_was_changed_by_hand_is_named(patient: LocalStack, doctor: Doctor) -> None:
    sqs, url = patient.clients.sqs, patient.deployed.outputs["SmallQueueUrl"]
    dead = patient.deployed.outputs["BulkDeadLettersUrl"]
    [before] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])[
        "Attributes"
    ].values()
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    sqs.send_message(QueueUrl=dead, MessageBody="[not ours]")
    try:
        said = wrong(doctor(1))
    finally:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": before})
        sqs.purge_queue(QueueUrl=dead)
    assert len(said) == 2
    assert any("the small queue's VisibilityTimeout is 7" in each for each in said)
    assert "the bulk lane has 1" in said


def test_a_worker_that_ended_is_named(patient: LocalStack, doctor: Doctor) -> None:
    [worker] = patient.state.workers
    worker.kill()
    worker.wait(10)
    try:
        assert wrong(doctor(1)) == ["0 of 1 bulk workers run"]
    finally:
        patient.workers.stop()  # forgets it, too
        patient.workers.start()


def test_a_stack_that_is_not_up_is_trouble() -> None:
    done = CliRunner().invoke(app, ["doctor", "--name", "nowhere", "--json"])
    assert isinstance(done.exception, CommandError)
    assert done.exception.status == 2
