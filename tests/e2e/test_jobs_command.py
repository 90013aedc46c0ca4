"""``fairlane jobs`` against the deployed API."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from typer.testing import CliRunner, Result

from fairlane_client.commands import selecting
from fairlane_client.commands.app import app
from scripts.local import airports, target
from scripts.local.errors import NotUp
from scripts.local.stack import LocalStack
from scripts.local.state import StackFolder

TENANT = "jobs-command"
IDS = ("007", "07", "Ä b")

Fairlane: TypeAlias = Callable[..., Result]


@pytest.fixture(scope="module")
def fairlane(stack: LocalStack) -> Fairlane:
    """``fairlane jobs`` as a tenant with three records."""
    some = list(airports.airports_by_tenant()["islands"].values())[: len(IDS)]
    airports.load(
        stack.clients.dynamodb,
        stack.deployed.outputs["RecordsTable"],
        tenants={TENANT: dict(zip(IDS, some, strict=True))},
    )
    env = {"FAIRLANE_URL": stack.api.url, "FAIRLANE_TOKEN": stack.issuer.token(TENANT)}

    def run(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(app, ["jobs", *arguments], env=env, input=typed)

    return run


SUBMIT = ("submit", "--operation", "adjust_number", "--json")
ADJUST = (*SUBMIT, "--param", 'field="elevation"')


def last(result: Result) -> dict[str, object]:
    """The last line of what was printed."""
    printed: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return printed


def test_a_job_is_submitted_awaited_shown_and_listed(fairlane: Fairlane) -> None:
    arguments = (*ADJUST, "--subject", "whole", "--param", "add=0.5", "--ids-file", "-", "--wait")
    result = fairlane(*arguments, typed="\n".join(IDS))
    assert result.exit_code == 0, result.output
    ended = last(result)
    assert (ended["state"], ended["succeeded"], ended["lane"]) == ("SUCCEEDED", 3, "small")
    assert last(fairlane("get", str(ended["id"]), "--json")) == ended
    assert last(fairlane("watch", str(ended["id"]), "--json")) == ended
    listed = [json.loads(line) for line in fairlane("list", "--json").stdout.splitlines()]
    [in_list] = [job for job in listed if job["id"] == ended["id"]]
    only_alone = {"request", "history"}
    assert "request" in ended
    assert in_list == {name: ended[name] for name in ended.keys() - only_alone}


def test_a_job_over_failing_records_says_so(fairlane: Fairlane) -> None:
    """A record that is not there fails alone."""
    arguments = (*ADJUST, "--subject", "gone", "--param", "add=1", "--id", "nowhere", "--id", "07")
    ended = last(fairlane(*arguments, "--wait"))
    assert (ended["total"], ended["succeeded"]) == (2, 1)


def test_what_failed_is_listed_reported_and_tried_again(
    fairlane: Fairlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job whose ids had no room in its request."""
    monkeypatch.setattr(selecting, "INLINE_IDS", 1)
    arguments = (*SUBMIT, "--subject", "results", "--param", 'field="name"', "--param", "add=1")
    options = ("--label", "team=a", "--tolerated-failure-percent", "10", "--ids-file", "-")
    submitted = fairlane(*arguments, *options, "--wait", typed="nowhere\n07")
    assert "uploading" in submitted.stderr
    ended = last(submitted)
    job = str(ended["id"])
    assert (ended["selection"], ended["labels"]) == ("upload", {"team": "a"})
    assert (ended["failed"], ended["skipped"], ended["state"]) == (1, 1, "FAILED")
    listed = [json.loads(line) for line in fairlane("items", job, "--json").stdout.splitlines()]
    assert [(each["outcome"], each["id"]) for each in listed] == [
        ("failed", "07"),
        ("skipped", "nowhere"),
    ]
    to = tmp_path / "report.jsonl"
    made = last(fairlane("report", job, "--to", str(to), "--json"))
    assert (made["count"], made["complete"], made["file"]) == (2, True, str(to))
    assert [json.loads(line) for line in to.read_text().splitlines()] == listed
    again = last(fairlane("retry", job, "--failed-only", "--json"))
    assert (again["retry_of"], again["total"]) == (job, 1)


def test_an_idempotency_key_brings_the_same_job(fairlane: Fairlane) -> None:
    arguments = (*ADJUST, "--subject", "key", "--param", "add=1", "--id", "07")
    ids = {last(fairlane(*arguments, "--idempotency-key", "k"))["id"] for _ in range(2)}
    assert len(ids) == 1


def test_a_bad_parameter_is_named(fairlane: Fairlane) -> None:
    result = fairlane(*ADJUST, "--subject", "bad", "--param", 'add="much"', "--id", "07")
    assert result.exit_code == 1
    error = last(result)["error"]
    assert isinstance(error, dict)
    assert (error["status"], error["field"]) == (400, "params.add")


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "retry"])
def test_a_job_that_has_ended_cannot_be_controlled(fairlane: Fairlane, verb: str) -> None:
    arguments = (*ADJUST, "--subject", f"ended-{verb}", "--param", "add=1", "--id", "07", "--wait")
    ended = last(fairlane(*arguments))
    result = fairlane(verb, str(ended["id"]), "--json")
    assert result.exit_code == 1
    error = last(result)["error"]
    assert isinstance(error, dict)
    assert (error["status"], error["code"]) == (409, "not_possible")
    assert fairlane(verb, str(ended["id"])).exit_code == 1


def test_a_job_of_somebody_else_is_not_there(fairlane: Fairlane) -> None:
    result = fairlane("get", "0" * 32)
    assert result.exit_code == 1
    assert "not_found" in result.stderr


def test_by_default_it_is_the_local_stack(
    stack: LocalStack, stacks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "StackFolder", partial(StackFolder, root=stacks))
    invoke = partial(CliRunner().invoke, app)
    listed = invoke(["jobs", "list", "--name", stack.name, "--tenant", TENANT, "--limit", "1"])
    assert listed.exit_code == 0
    nobody = invoke(["jobs", "list", "--name", stack.name])
    assert nobody.exit_code == 2
    assert "--tenant" in nobody.stderr
    with pytest.raises(NotUp, match="fairlane local up"):
        invoke(["jobs", "list", "--name", "nowhere", "--tenant", TENANT], catch_exceptions=False)
