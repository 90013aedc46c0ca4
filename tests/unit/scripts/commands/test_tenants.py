"""``fairlane tenants``: limits shown, set and taken back; bad ones are refused before anything."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from fairlane_client.commands.app import app
from handlers.jobs.lifecycle.submit import Created, TooMany
from handlers.jobs.storage.rates import tenant_limits
from handlers.jobs.transitions.quotas import Use, usage
from handlers.jobs.transitions.shares import read_share
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.rates import Unit
from handlers.jobs.words.states import State
from handlers.testing.world import MemoryWorld, memory_world
from scripts.commands import tenants
from tests.support.jobs import TENANT, create, fill, new_job, now
from tests.support.operators import seen_by_operator


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryWorld:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    monkeypatch.setattr(tenants, "deployment", lambda *_: seen_by_operator(world))
    return world


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["tenants", arguments[0], "--tenant", TENANT, *arguments[1:]])


def invoke_new(*arguments: str) -> Result:
    return invoke("set", "--new", *arguments)


def test_limits_are_set_and_held_jobs_admitted_at_once(world: MemoryWorld) -> None:
    ids = fill(world, 1)
    for number in range(3):
        world.runtime.sleep(1)
        create(world, ids, f"s{number}")
    result = invoke("set", "--small", "2", "--max-active", "7", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "tenant": TENANT,
        "lanes": {
            "small": {"count": 2, "held": 1, "limit": 2, "own": True},
            "bulk": {"count": 0, "held": 0, "limit": 2, "own": False},
        },
        "active": {"count": 3, "limit": 7, "own": True},
        "rates": {},
        "weight": 1,
    }


def test_a_limit_is_taken_back(world: MemoryWorld) -> None:
    invoke_new("--small", "9", "--bulk", "9", "--max-active", "9")
    invoke("set", "--small", "default", "--max-active", "default")
    seen = usage(world, TENANT)
    assert (seen.lanes[Lane.SMALL].own, seen.lanes[Lane.BULK].own, seen.active.own) == (
        False,
        True,
        False,
    )


def test_rates_are_set_and_taken_back(world: MemoryWorld) -> None:
    invoke_new("--records-per-second", "200", "--write-units-per-second", "50")
    assert tenant_limits(world, TENANT) == {Unit.RECORDS: 200, Unit.WRITE_UNITS: 50}
    assert "at most 200 records a second" in invoke("show").stdout
    invoke("set", "--records-per-second", "none")
    assert tenant_limits(world, TENANT) == {Unit.WRITE_UNITS: 50}


def test_showing_changes_nothing(world: MemoryWorld) -> None:
    before = world.store.snapshot()
    result = invoke("show")
    assert result.exit_code == 0
    assert "the deployment's" in result.stdout
    assert world.store.snapshot() == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--small", "-1"],
        ["--small", "1", "--pause"],
        ["--bulk", "default", "--pause"],
        ["--bulk", "two"],
        ["--max-active", "1.5"],
    ]
    + [["--records-per-second", text] for text in ("0", "-1", "fast", "1e3", "10000001")],
)
def test_what_is_no_limit_is_refused(world: MemoryWorld, arguments: list[str]) -> None:
    before = world.store.snapshot()
    assert invoke("set", *arguments).exit_code == 2
    assert world.store.snapshot() == before


def test_a_tenant_that_cannot_be_is_refused(world: MemoryWorld) -> None:
    result = CliRunner().invoke(app, ["tenants", "show", "--tenant", "a\nb"])
    assert result.exit_code == 2
    assert not world.store.snapshot()


def test_a_weight_is_set_shown_and_taken_back(world: MemoryWorld) -> None:
    assert invoke_new("--weight", "3").exit_code == 0
    assert read_share(world, TENANT).weight == 3
    assert json.loads(invoke("show", "--json").stdout)["weight"] == 3
    assert invoke("set", "--weight", "default").exit_code == 0
    assert read_share(world, TENANT).weight == 1


@pytest.mark.parametrize("weight", ["0", "101", "-1", "1.5", "heavy"])
def test_a_bad_weight_changes_nothing(world: MemoryWorld, weight: str) -> None:
    result = invoke_new(f"--weight={weight}")
    assert result.exit_code == 2
    assert "--weight" in result.stderr
    assert read_share(world, TENANT).weight == 1


def test_c119_a_tenant_is_stopped_and_let_go_on(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 1))
    done = invoke("set", "--small", "0", "--max-active", "0", "--pause", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["lanes"]["small"]["limit"], said["active"]["limit"]) == (0, 0)
    assert (said["paused"], said["not_paused"]) == ([job.id], [])
    assert now(world, job).state is State.PAUSED
    assert create(world, ["r0000"], "s2") == TooMany(0)
    assert invoke("set", "--small", "default", "--max-active", "default").exit_code == 0
    assert isinstance(create(world, ["r0000"], "s2"), Created)


def test_c119_a_tenant_nobody_knows_is_refused_unless_it_is_new(world: MemoryWorld) -> None:
    refused = invoke("set", "--small", "3")
    assert refused.exit_code == 2
    assert "never had a job" in " ".join(refused.stderr.replace("│", " ").split())
    assert not world.store.snapshot()
    assert "is its name right" in invoke("show").stdout
    assert invoke_new("--small", "3").exit_code == 0
    assert invoke("set", "--small", "4").exit_code == 0
    assert usage(world, TENANT).lanes[Lane.SMALL] == Use(0, 4, own=True)
