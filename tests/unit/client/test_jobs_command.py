"""``fairlane jobs``: what is typed arrives exactly, and what is refused is said with status 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fairlane_client import ApiProblem, Client, JobView, NewJob, Unreachable
from fairlane_client.commands import calling, tables
from fairlane_client.commands.app import app
from tests.support.commands import BASE, JOB, invoke, view, words


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[NewJob, str | None]]:
    sent: list[tuple[NewJob, str | None]] = []

    def submit(
        self: Client, job: NewJob, *, idempotency_key: str | None, on_conflict: str | None
    ) -> JobView:
        sent.append((job, idempotency_key))
        return view()

    monkeypatch.setattr(Client, "submit", submit)
    return sent


def test_parameters_are_json_and_numbers_stay_exact(sent: list[tuple[NewJob, str | None]]) -> None:
    result = invoke(
        *BASE,
        "--params",
        '{"field": "price", "add": 1}',
        "--param",
        "add=0.1000000000000000055",
        "--param",
        'note="a=b"',
        "--id",
        "007",
        "--id",
        "7",
        "--idempotency-key",
        "k",
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["id"] == "j1"
    [(job, key)] = sent
    expected = {"field": "price", "add": Decimal("0.1000000000000000055"), "note": "a=b"}
    assert (job.params, job.ids, key) == (expected, ["007", "7"], "k")


def test_ids_come_from_a_file_or_standard_input(
    sent: list[tuple[NewJob, str | None]], tmp_path: Path
) -> None:
    file = tmp_path / "ids"
    file.write_text("007\n\nÄ b\n", encoding="utf-8")
    assert invoke(*BASE, "--ids-file", str(file), "--id", "1").exit_code == 0
    assert invoke(*BASE, "--ids-file", "-", typed="8\n9").exit_code == 0
    assert [job.ids for job, _ in sent] == [["1", "007", "Ä b"], ["8", "9"]]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--param", "novalue"),
        ("--param", "=1"),
        ("--param", "name=bare word"),
        ("--params", "[1]"),
        ("--params", "{"),
        ("--ids-file", "/does/not/exist"),
    ],
)
def test_what_cannot_be_read_is_not_sent(
    sent: list[tuple[NewJob, str | None]], option: str, value: str
) -> None:
    result = invoke(*BASE, option, value)
    assert result.exit_code == 2
    assert option in result.stderr
    assert sent == []


PROBLEM = ApiProblem(
    409, "subject_busy", "job j0 works on it", "subject", None, {"active_job": {"id": "j0"}}
)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> JobView:
        raise PROBLEM

    for verb in ("submit", "get", "page", "items", "report", "_control"):
        monkeypatch.setattr(Client, verb, refuse)


OF_ONE = ("get", "cancel", "watch", "retry", "items", "report")
VERBS = [*((verb, JOB) for verb in OF_ONE), ("list",), BASE[:-1]]


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: arguments[0])
def test_a_problem_is_printed_with_status_1(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    for part in ("subject_busy", "subject", "job j0 works on it", "j0"):
        assert part in result.stderr


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: arguments[0])
def test_a_problem_is_json_when_asked_for(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == {
        "status": 409,
        "code": "subject_busy",
        "field": "subject",
        "detail": "job j0 works on it",
        "active_job": "j0",
    }


def test_nobody_answering_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> JobView:
        raise Unreachable("nobody there")

    monkeypatch.setattr(Client, "get", silent)
    result = invoke("get", JOB, "--json")
    assert result.exit_code == 6
    assert json.loads(result.stdout)["error"] == {"code": "unreachable", "detail": "nobody there"}


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "retry"])
def test_each_verb_is_its_own_call(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    called: list[tuple[str, str]] = []

    def control(self: Client, job_id: str, act: str, *_: object, **__: object) -> JobView:
        called.append((job_id, act))
        return view(state="CANCELLING")

    monkeypatch.setattr(Client, "_control", control)
    result = invoke(verb, JOB, "--json")
    assert (result.exit_code, called) == (0, [(JOB, verb)])


def test_only_the_failed_records_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def retry(self: Client, job_id: str, *, failed_only: bool) -> JobView:
        assert (job_id, failed_only) == (JOB, True)
        return view(id="j2", retry_of="j1")

    monkeypatch.setattr(Client, "retry", retry)
    result = invoke("retry", JOB, "--failed-only", "--json")
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["id"], shown["retry_of"]) == (0, "j2", "j1")


@pytest.mark.parametrize(("last", "code"), [("SUCCEEDED", 0), ("FAILED", 4), ("CANCELLED", 5)])
@pytest.mark.parametrize("as_json", [True, False])
def test_watching_ends_with_the_job_and_says_whether_it_succeeded(
    monkeypatch: pytest.MonkeyPatch, last: str, code: int, *, as_json: bool
) -> None:
    seen = [view(), view(), view(state="RUNNING", succeeded=1, total=None), view(state=last)]

    def watch(*_: object, **__: object) -> Iterator[JobView]:
        yield from seen

    monkeypatch.setattr(Client, "watch", watch)
    result = invoke("watch", JOB, *(["--json"] if as_json else []))
    assert result.exit_code == code
    assert result.stderr.splitlines()[-1].startswith(last)
    if as_json:
        states = [json.loads(line)["state"] for line in result.stdout.splitlines()]
        assert states == ["QUEUED", "RUNNING", last]  # what did not change is not repeated


def test_jobs_are_listed_for_people_and_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def jobs(self: Client, limit: int, **_: object) -> Iterator[JobView]:
        yield from [view(), view(id="j2", total=None)][:limit]

    monkeypatch.setattr(Client, "jobs", jobs)
    assert "j2" in invoke("list").stdout
    lines = invoke("list", "--limit", "1", "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["j1"]


@pytest.mark.parametrize("option", ["--created-after", "--created-before"])
def test_a_time_that_is_none_is_refused_by_its_option(option: str) -> None:
    result = invoke("list", option, "yesterday")
    assert result.exit_code == 2
    assert f"{option} 'yesterday' is no time such as 2026-01-31" in words(result)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "--state", "DONE"), "for '--state': 'DONE' is not one of 'QUEUED', "),
        (("items", JOB, "--outcome", "x"), "for '--outcome': 'x' is not one of 'failed', "),
    ],
)
def test_a_word_that_is_none_of_the_choices_is_refused_in_plain_words(
    arguments: tuple[str, ...], said: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert f"Invalid value {said}" in words(result)


def test_another_api_needs_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_call(*_: Any) -> JobView:
        raise AssertionError("called")

    monkeypatch.setattr(Client, "get", no_call)
    result = CliRunner().invoke(app, ["jobs", "get", JOB, "--url", "http://127.0.0.1:1"])
    assert result.exit_code == 2
    assert "FAIRLANE_TOKEN" in result.stderr


@pytest.mark.parametrize("tenant", [(), ("--tenant", "")])
def test_a_local_stack_needs_a_tenant(
    monkeypatch: pytest.MonkeyPatch, tenant: tuple[str, ...]
) -> None:
    local = SimpleNamespace(url="http://127.0.0.1:1", token=lambda _: "t")
    monkeypatch.setattr(calling, "_local", lambda _: local)
    result = CliRunner().invoke(app, ["jobs", "list", *tenant], env={"FAIRLANE_URL": None})
    assert result.exit_code == 2
    assert "no tenant is named: set --tenant" in words(result)


@pytest.mark.parametrize("verb", ["get", "watch", "cancel", "retry", "items", "report"])
def test_an_id_that_no_address_can_hold_is_refused_as_such(verb: str) -> None:
    result = invoke(verb, "\udcff")
    assert result.exit_code == 2
    assert "'job_id'" in result.stderr


def test_fields_with_several_values_are_told_in_words() -> None:
    console = Console(width=80, file=StringIO())
    console.print(tables.one(view(progress={"percent": 9})))
    assert isinstance(console.file, StringIO)
    assert "percent 9" in console.file.getvalue()


def test_what_a_job_was_asked_for_is_shown_as_json() -> None:
    asked = {
        "params": {"field": "colour", "value": None, "draft": True},
        "query": {"all": [{"field": "größe", "op": "exists", "value": True}]},
        "tolerated_failure_percent": 100,
        "stop_when_hopeless": True,
    }
    console = Console(width=1000, file=StringIO())
    console.print(tables.one(view(request=asked)))
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert 'params {"field": "colour", "value": null, "draft": true}' in shown
    assert 'query {"all": [{"field": "größe", "op": "exists", "value": true}]}' in shown
    assert "stop_when_hopeless true" in shown
