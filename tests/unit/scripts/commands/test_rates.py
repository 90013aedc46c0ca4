"""``fairlane rates``: limits of the bulk lane and of its operations."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from fairlane_client.commands.app import app
from handlers.jobs.storage.rates import lane_limits
from handlers.jobs.words.rates import Unit
from handlers.testing.world import MemoryWorld, memory_world
from scripts.commands import rates
from tests.support.operators import seen_by_operator


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryWorld:
    world = memory_world()
    monkeypatch.setattr(rates, "deployment", lambda *_: seen_by_operator(world))
    return world


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["rates", *arguments])


def test_lane_and_operation_have_limits_of_their_own(world: MemoryWorld) -> None:
    of_one = ("--operation", "reindex")
    shown = invoke("set", "--records-per-second", "900", "--json")
    assert json.loads(shown.stdout) == {
        "lane": "bulk",
        "operation": None,
        "rates": {"records": 900},
    }
    invoke("set", *of_one, "--write-units-per-second", "40")
    assert lane_limits(world) == {Unit.RECORDS: 900}
    assert lane_limits(world, "reindex") == {Unit.WRITE_UNITS: 40}
    assert "at most 40 write units a second" in invoke("show", *of_one).stdout
    invoke("set", *of_one, "--write-units-per-second", "none")
    assert "there is no limit" in invoke("show", *of_one).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["set"],
        ["set", "--records-per-second", "0"],
        ["set", "--operation", "none such", "--records-per-second", "1"],
        ["show", "--operation", "none such"],
    ],
)
def test_what_is_no_limit_is_refused(world: MemoryWorld, arguments: list[str]) -> None:
    before = world.store.snapshot()
    assert invoke(*arguments).exit_code == 2
    assert world.store.snapshot() == before
