"""What is told of jobs: which events, to whom, once and again, and that nothing waits for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handlers.jobs.events.rows import EVENT_ROLE, _row, publish_now, row_key
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.storage.transaction import Transaction
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, EventType, NotTaken
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from tests.support.jobs import TENANT, run_next
from tests.support.listeners import Ear, event, new_job, recover, rows, world_of

# --- what is told -----------------------------------------------------------------------------


def test_a_bus_hears_of_a_jobs_life_at_once_and_no_row_is_left() -> None:
    bus = Ear()
    world = world_of(bus=bus)
    job = new_job(world, labels={"team": "a"})
    assert bus.said == ["created"]
    run_next(world)
    assert bus.said == ["created", "started", "ended"]
    assert not rows(world)
    states = [json.loads(event.detail)["job"]["state"] for event in bus.heard]
    assert states == ["QUEUED", "RUNNING", "SUCCEEDED"]
    ended = json.loads(bus.heard[-1].detail)
    stored = read_job(world, job.id)
    assert stored is not None
    assert ended["key"] == bus.heard[-1].key
    assert (
        ended["job"].items()
        >= {
            "id": job.id,
            "tenant": TENANT,
            "subject": "s",
            "operation": "adjust_number",
            "lane": "small",
            "total": 1,
            "succeeded": 1,
            "failed": 0,
            "skipped": 0,
            "labels": {"team": "a"},
        }.items()
    )
    assert ended["job"]["finished_at"].endswith("Z")
    assert len({event.key for event in bus.heard}) == 3


def test_without_a_bus_or_an_address_nothing_is_written() -> None:
    world = world_of()
    new_job(world)
    run_next(world)
    assert not rows(world)


def test_a_held_job_is_created_held_and_then_admitted() -> None:
    bus = Ear()
    world = world_of(Limits(tenant_slots_small=1), bus=bus)
    new_job(world, "s1")
    held = new_job(world, "s2")
    run_next(world)
    mine = [event for event in bus.heard if event.job_id == held.id]
    assert [event.what for event in mine] == [EventType.CREATED, EventType.ADMITTED]
    reasons = [json.loads(event.detail)["job"].get("waiting_reason") for event in mine]
    assert reasons == ["tenant_limit", None]


def test_only_the_first_attempt_is_a_start() -> None:
    bus = Ear()
    world = world_of(bus=bus)
    new_job(world)
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    stopped = Worker("w", stopping=lambda: True)
    apply_decision(world.queues[Lane.SMALL], delivery, on_message(world, delivery, stopped))
    run_next(world)
    assert bus.said == ["created", "started", "ended"]


def test_a_retried_job_ends_twice_with_two_keys() -> None:
    bus = Ear()
    world = world_of(Limits(chunk_size=1), bus=bus)
    params = {"field": "none", "add": 1}
    job = new_job(world, params=params, ids=["a", "b"], tolerated_failure_percent=0)
    run_next(world)
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    run_next(world)
    ended = [event for event in bus.heard if event.what is EventType.ENDED]
    assert len({event.key for event in ended}) == 2
    assert ended[0].fence < ended[1].fence


def test_a_cancelled_job_ends() -> None:
    bus = Ear()
    world = world_of(bus=bus)
    job = new_job(world)
    control.cancel(world, TENANT, job.id)
    assert json.loads(bus.heard[-1].detail)["job"]["state"] == "CANCELLED"


# --- listeners that fail ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [Transient("down"), NotTaken("no"), RuntimeError("a bug")])
def test_a_job_runs_and_ends_whatever_the_bus_does(error: Exception) -> None:
    bus = Ear(fails=error)
    world = world_of(bus=bus)
    job = new_job(world)
    run_next(world)
    ended = read_job(world, job.id)
    assert ended is not None
    assert ended.state is State.SUCCEEDED
    assert not world.queues[Lane.SMALL].snapshot()
    bus.fails = None
    recover(world)
    assert sorted(bus.said) == ["created", "ended", "started"]
    assert not rows(world)


# --- the listeners themselves -----------------------------------------------------------------


def test_rows_of_one_job_lie_beside_it() -> None:
    assert row_key(event()) == control_table.event_key("j", 7, "ended", EVENT_BUS)
    assert row_key(event()).pk == control_table.job_key("j").pk


@pytest.mark.parametrize(
    ("deployed", "listener", "heard"),
    [
        (EVENT_BUS, EVENT_BUS, 1),
        (ADDRESS, ADDRESS, 0),
        (ADDRESS, EVENT_BUS, 0),
    ],
)
def test_only_the_bus_is_told_at_once_and_only_where_there_is_one(
    deployed: str, listener: str, heard: int
) -> None:
    ear = Ear()
    world = replace(world_of(), listeners={deployed: ear})
    made = _row(world, event(listener=listener))
    world.store.transact("load", [made])
    publish_now(world, Transaction("told", {EVENT_ROLE + listener: made}))
    assert (ear.asked, len(rows(world))) == (heard, 1 - heard)
    assert "event_crashed" not in world.telemetry.actions()
