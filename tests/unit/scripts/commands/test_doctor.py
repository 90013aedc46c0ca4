"""``fairlane doctor``: its exit status, and that everything is said, the wrong first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from typer.testing import CliRunner, Result

from fairlane_client.commands.app import app
from fairlane_client.commands.errors import CommandError
from handlers.jobs.words.errors import Transient
from scripts.commands import doctor
from scripts.ops.doctor.finding import Finding, note, ok, unreadable, wrong

WRONG = wrong("timing", "the small queue's VisibilityTimeout is 7", "deploy again")
OTHERS = (
    ok("tables", "all are active"),
    note("held jobs", "5 are held"),
    unreadable("grants", "?"),
)


def invoke(monkeypatch: pytest.MonkeyPatch, findings: Sequence[Finding], *arguments: str) -> Result:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(doctor, "_findings", lambda *_: iter(findings))
    return CliRunner().invoke(app, ["doctor", *arguments])


def test_a_healthy_stack_ends_with_0_whatever_could_not_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = invoke(monkeypatch, OTHERS)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "healthy"
    assert all(each.what in done.stdout for each in OTHERS)


def test_what_is_wrong_is_said_first_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    done = invoke(monkeypatch, [*OTHERS, WRONG])
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert [WRONG.what in line and "deploy again" in line for line in lines[1:3]] == [True, False]
    assert lines[-1] == "1 things are wrong"
    said = json.loads(invoke(monkeypatch, [*OTHERS, WRONG], "--json").stdout)
    assert said["healthy"] is False
    assert [each["grade"] for each in said["findings"]] == ["ok", "note", "unreadable", "wrong"]


def test_what_cannot_be_looked_at_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Iterator[Finding]:
        yield OTHERS[0]
        raise Transient("the table is away")

    monkeypatch.setattr(doctor, "_findings", lambda *_: away())
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert isinstance(done.exception, CommandError)
    assert done.exception.status == 2
    assert "the table is away" in str(done.exception)
