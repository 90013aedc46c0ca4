"""``fairlane dispatches``, ``effects`` and ``events`` on a deployment's own rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.jobs.events.rows import event_rows
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.effect import Batch, Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, EventType, JobEvent, NotTaken
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from scripts.commands import dispatches, effects, events
from scripts.ops.deployment import Quiet
from tests.support.operators import seen_by_operator

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Runtime, World
    from tests.handlers.deployment import Deployment

HOOK: Final = "https://[fd00::1]/jobs"


@dataclass
class Outside:
    """A sink and a listener that take nothing while they are down."""

    down: bool = True
    heard: list[str] = field(default_factory=list)

    def deliver(self, batch: Batch) -> Delivered:
        if self.down:
            raise Transient("[down]")
        self.heard.append(batch.key)
        return Delivered()

    def deliver_event(self, event: JobEvent) -> None:
        if self.down:
            raise NotTaken("[answered 410]")
        self.heard.append(event.key)


@dataclass
class Site:
    """A deployment where two small jobs have run, and nothing outside took anything."""

    outside: Outside
    world: World
    jobs: list[str]

    def recover(self) -> None:
        """A run of recovery for which everything is due."""
        runtime = Ahead(self.world.runtime)
        Recovery(replace(self.world, runtime=runtime)).run()


@dataclass(frozen=True)
class Ahead:
    """A runtime whose clock is an hour ahead."""

    runtime: Runtime

    def now(self) -> int:
        return self.runtime.now() + 3_600_000

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runtime, name)


def site_of(stack: Deployment, monkeypatch: pytest.MonkeyPatch, port: str, name: str) -> Site:
    """port: of the world; name: of what is outside there."""
    outside = Outside()
    given: Any = {port: {name: outside}}
    world = replace(stack.world, limits=Limits(max_effect_tries=1), **given)
    here = seen_by_operator(replace(world, telemetry=Quiet()))
    for command in (effects, events):
        monkeypatch.setattr(command, "deployment", lambda *_: here)
    monkeypatch.setenv("COLUMNS", "300")
    ids = stack.fill(1)
    jobs = [stack.created(ids, f"s{n}") for n in range(2)]
    for delivery in stack.receive(limit=10):
        on_message(world, delivery, Worker("w"))
    made = Site(outside, world, jobs)
    made.recover()
    return made


def fairlane(*words: str) -> Any:
    """What the command prints as JSON."""
    return json.loads(plainly(*words, "--json"))


def plainly(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def check(site: Site, what: str, each: int, error: str) -> None:
    """each: rows of one job."""
    listed = fairlane(what, "list")
    assert (listed["open"], listed["parked"]) == (0, 2 * each)
    assert {row["job"] for row in listed[what]} == set(site.jobs)
    assert {row["state"] for row in listed[what]} == {"parked"}
    assert all(row["error"].endswith(error) for row in listed[what])
    shown = plainly(what, "list")
    assert f"{2 * each} parked, 0 open" in shown
    assert error in shown

    mine = fairlane(what, "list", "--job", site.jobs[0])
    assert [row["job"] for row in mine[what]] == [site.jobs[0]] * each
    assert fairlane(what, "replay", "--job", site.jobs[0]) == {"replayed": each}
    listed = fairlane(what, "list")
    assert (listed["open"], listed["parked"]) == (each, each)

    site.outside.down = False
    site.recover()
    assert len(site.outside.heard) == each
    assert all(key.startswith(site.jobs[0]) for key in site.outside.heard)
    assert plainly(what, "replay").startswith(f"{each} {what} will ")
    site.recover()
    assert len(site.outside.heard) == 2 * each
    assert fairlane(what, "list") == {"open": 0, "parked": 0, what: []}
    assert fairlane(what, "replay") == {"replayed": 0}


def test_parked_effects_are_listed_and_run_again(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(stack, monkeypatch, "sinks", "webhook")
    check(site, "effects", 1, "[down]")


def test_parked_events_are_listed_and_told_again(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(stack, monkeypatch, "listeners", EVENT_BUS)
    check(site, "events", 2, "[answered 410]")
    said = sorted(key.split(":")[1] for key in site.outside.heard)
    assert said == ["ended", "ended", "started", "started"]


def test_c78_parked_dispatches_are_listed_and_sent_again(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> frozenset[int]:
        raise Transient("[down]")

    world = replace(stack.world, limits=Limits(max_dispatch_tries=1))
    here = seen_by_operator(replace(world, telemetry=Quiet()))
    monkeypatch.setattr(dispatches, "deployment", lambda *_: here)
    monkeypatch.setenv("COLUMNS", "300")
    with monkeypatch.context() as patched:
        patched.setattr(type(stack.world.queues[Lane.SMALL]), "send", lambda *_: refused(_))
        jobs = [stack.created(stack.fill(1), f"s{n}") for n in range(2)]
        site = Site(Outside(), world, jobs)
        assert fairlane("dispatches", "list")["open"] == 2
        site.recover()
    listed = fairlane("dispatches", "list")
    assert (listed["open"], listed["parked"]) == (0, 2)
    assert {row["job"] for row in listed["dispatches"]} == set(jobs)
    assert all(row["error"].endswith("[down]") for row in listed["dispatches"])
    assert "[down]" in plainly("dispatches", "list")
    assert fairlane("dispatches", "replay", "--job", jobs[0]) == {"replayed": 1}
    site.recover()
    assert [row["job"] for row in fairlane("dispatches", "list")["dispatches"]] == [jobs[1]]
    assert plainly("dispatches", "replay").startswith("1 dispatches will ")
    site.recover()
    assert fairlane("dispatches", "list") == {"open": 0, "parked": 0, "dispatches": []}
    assert len(stack.receive(limit=10)) == 2


def test_an_address_is_shown_as_it_is(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a job that was made where addresses are taken; a tool's markup would eat this one."""
    site = site_of(stack, monkeypatch, "listeners", ADDRESS)
    assert fairlane("events", "list") == {"open": 0, "parked": 0, "events": []}
    found = stack.job(site.jobs[0]).model_copy(update={"notify": HOOK})
    written = event_rows(site.world, found, EventType.ENDED)
    stack.world.store.transact("event", list(written.values()))
    site.recover()
    [row] = fairlane("events", "list")["events"]
    assert (row["listener"], row["to"], row["event"]) == (ADDRESS, HOOK, "ended")
    assert HOOK in plainly("events", "list")
