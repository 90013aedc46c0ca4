"""``fairlane aws-check``: its exit status, its table, and who it calls as."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError as AwsError
from typer.testing import CliRunner, Result

from fairlane_client import ApiProblem, StillRunning, Unreachable
from fairlane_client.commands.app import app
from fairlane_client.commands.errors import CommandError
from fairlane_client.problems import problem_of
from handlers.jobs.words.errors import Denied
from scripts.commands import aws_check
from scripts.local.errors import LocalError
from scripts.ops.on_aws.rows import Row, Verdict, judged, told, unchecked
from scripts.ops.on_aws.run import Place

HELD = judged("a small job", "SUCCEEDED", ok=True)
BROKEN = judged("a cancel", "the job is RUNNING", ok=False)
OTHERS = (unchecked("the web ACL", "no right"), Row("scaling", Verdict.ON_AWS, "nothing"))


def invoke(patch: pytest.MonkeyPatch, rows: Sequence[Row], *arguments: str) -> Result:
    patch.setenv("COLUMNS", "120")
    patch.setattr(aws_check, "_place", lambda *_: None)
    patch.setattr(aws_check, "check", lambda *_, **__: list(rows))
    return CliRunner().invoke(app, ["aws-check", *arguments])


def test_what_held_and_what_could_not_be_checked_ends_with_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = invoke(monkeypatch, [HELD, *OTHERS])
    assert done.exit_code == 0
    assert "could not be checked: no right" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 held, 1 not checked, 1 only on AWS"


def test_what_is_broken_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    done = invoke(monkeypatch, [HELD, BROKEN, *OTHERS], "--json")
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert said["held"] is False
    assert [row["verdict"] for row in said["rows"]] == list(Verdict)


def test_a_stack_that_cannot_be_read_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise LocalError("no such stack")

    monkeypatch.setattr(aws_check, "deployment", away)
    done = CliRunner().invoke(app, ["aws-check", "--stack", "S"])
    assert isinstance(done.exception, CommandError)
    assert done.exception.status == 2


@pytest.mark.parametrize(
    ("signed", "outputs", "options", "called_as"),
    [
        (True, {"DemoRole": "demo"}, [], "demo"),
        (True, {"DemoRole": "demo"}, ["--role", "mine"], "mine"),
        (True, {}, [], None),
        (True, {}, ["--token", "t"], "t"),
        (False, {}, ["--token", "t"], "t"),
    ],
)
def test_it_calls_as_a_role_or_as_a_tokens_tenant(
    monkeypatch: pytest.MonkeyPatch,
    *,
    signed: bool,
    outputs: dict[str, str],
    options: list[str],
    called_as: str | None,
) -> None:
    here = SimpleNamespace(outputs={"ApiUrl": "https://api.example/live/", **outputs})
    callers: list[object] = []
    monkeypatch.setattr(aws_check, "deployment", lambda *_: here)
    monkeypatch.setattr(aws_check, "resources_of", lambda _: {})
    monkeypatch.setattr(aws_check, "takes_signatures", lambda _: signed)
    monkeypatch.setattr(aws_check, "signer", lambda role: role)

    def called(place: Place, **_: object) -> list[Row]:
        callers.append(place.caller)
        return []

    monkeypatch.setattr(aws_check, "check", called)
    assert CliRunner().invoke(app, ["aws-check", "--stack", "S", *options]).exit_code == 0
    assert callers == [called_as]


def test_a_stack_that_takes_tokens_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_check, "deployment", lambda *_: SimpleNamespace(outputs={"ApiUrl": ""}))
    monkeypatch.setattr(aws_check, "resources_of", lambda _: {})
    monkeypatch.setattr(aws_check, "takes_signatures", lambda _: False)
    done = CliRunner().invoke(app, ["aws-check", "--stack", "S"])
    assert done.exit_code == 2
    assert "takes tokens" in done.stderr


DENIED = AwsError({"Error": {"Code": "AccessDenied", "Message": "sqs:SendMessage"}}, "SendMessage")


def happens(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (DENIED, Verdict.UNCHECKED),
        (Denied("kms:Decrypt"), Verdict.UNCHECKED),
        (problem_of(403, {}, None), Verdict.UNCHECKED),
        (LocalError("no region is named"), Verdict.UNCHECKED),
        (problem_of(500, {}, None), Verdict.BROKEN),
        (StillRunning("job j is QUEUED"), Verdict.BROKEN),
        (Unreachable("nobody answers"), Verdict.BROKEN),
    ],
)
def test_a_missing_right_is_a_row_and_what_fails_is_broken(
    error: Exception, verdict: Verdict
) -> None:
    rows: list[Row] = []
    with told("a redrive", rows):
        happens(error)
    [row] = rows
    assert (row.what, row.verdict) == ("a redrive", verdict)
    assert isinstance(error, ApiProblem) or str(error) in row.saw


def test_an_error_of_the_check_itself_is_no_row() -> None:
    rows: list[Row] = []
    with pytest.raises(ZeroDivisionError), told("a redrive", rows):
        raise ZeroDivisionError
    assert rows == []
