"""C109: a command that changes a deployment leaves who ran it; ``fairlane audit``."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from typer.testing import CliRunner, Result

from fairlane_client.commands.app import app
from handlers.jobs.words.errors import Transient
from handlers.testing.world import MemoryWorld, memory_world
from scripts.commands import audit, dispatches, dlq, effects, events, rates, tenants
from tests.support.jobs import TENANT
from tests.support.operators import OPERATOR, seen_by_operator

CHANGING = {
    "tenants set": ["tenants", "set", "--tenant", TENANT, "--new", "--small", "0", "--pause"],
    "rates set": ["rates", "set", "--records-per-second", "5"],
    "dlq redrive": ["dlq", "redrive", "--force"],
    "dlq set-aside": ["dlq", "set-aside", "--message", "m1"],
    "effects replay": ["effects", "replay"],
    "dispatches replay": ["dispatches", "replay"],
    "events replay": ["events", "replay", "--job", "7"],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "tenants set": {"tenant": TENANT, "small": "0", "pause": True},
    "rates set": {"records_per_second": "5"},
    "dlq redrive": {"force": True},
    "dlq set-aside": {"message": "m1"},
    "effects replay": {},
    "dispatches replay": {},
    "events replay": {"job": "7"},
}
LOOKING = [
    ["tenants", "show", "--tenant", TENANT],
    ["rates", "show"],
    ["dlq", "list"],
    ["dlq", "list", "--aside"],
    ["effects", "list"],
    ["dispatches", "list"],
    ["events", "list"],
    ["audit"],
]


@pytest.fixture
def world() -> MemoryWorld:
    return memory_world()


@pytest.fixture
def here(world: MemoryWorld, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    here = seen_by_operator(world, dead_letters=world.dead_letters)
    for command in (audit, dispatches, dlq, effects, events, rates, tenants):
        monkeypatch.setattr(command, "deployment", lambda *_: here)
    return here


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def audited() -> list[dict[str, Any]]:
    commands: list[dict[str, Any]] = json.loads(invoke("audit", "--json").stdout)["commands"]
    return commands


@pytest.mark.parametrize("command", CHANGING)
@pytest.mark.usefixtures("here")
def test_c109_a_command_that_changes_something_names_its_caller(command: str) -> None:
    invoke(*CHANGING[command])
    [entry] = audited()
    assert (entry["who"], entry["command"]) == (OPERATOR, command)
    assert entry["arguments"] == ARGUMENTS[command]
    assert entry["outcome"]
    assert OPERATOR in "".join(invoke("audit").stdout.split())


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.usefixtures("here")
def test_c109_a_command_that_looks_leaves_none(command: list[str], world: MemoryWorld) -> None:
    assert invoke(*command).exit_code == 0
    assert not world.store.snapshot()


@pytest.mark.parametrize("command", CHANGING)
def test_c109_nothing_is_done_when_the_caller_cannot_be_told(
    command: str, here: SimpleNamespace, world: MemoryWorld
) -> None:
    def nobody() -> str:
        raise NoCredentialsError

    here.operator = nobody
    assert invoke(*CHANGING[command]).exit_code != 0
    assert not world.store.snapshot()


@pytest.mark.usefixtures("here")
def test_c109_a_command_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> int:
        raise Transient("the table is away")

    monkeypatch.setattr(tenants, "admit_held", fails)
    assert invoke(*CHANGING["tenants set"]).exit_code != 0
    assert [entry["outcome"] for entry in audited()] == ["failed: the table is away"]
