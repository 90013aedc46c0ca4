"""What is told of the end of a job that cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import EventType
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.writes import Update
from tests.support.jobs import TENANT, run_next
from tests.support.listeners import HOOK, Ear, new_job, recover, rows, world_of
from tests.support.process import Killed, die, nth, process

if TYPE_CHECKING:
    from handlers.testing.world import MemoryWorld


def damaged(world: MemoryWorld, job: Job, **attributes: Any) -> None:
    world.store.transact("break", [Update(control_table.job_key(job.id), set=attributes)])


def ended_of(listener: Ear) -> list[dict[str, Any]]:
    ended = [event for event in listener.heard if event.what is EventType.ENDED]
    return [json.loads(event.detail)["job"] for event in ended]


@pytest.mark.parametrize(
    ("broken", "left_out"),
    [
        ({"params": 7, "waiting_reason": "retry"}, set()),
        ({"waiting_reason": "of a newer version"}, set()),
        ({"state": "NEWER"}, set()),
        ({"total": -1}, {"total"}),
        ({"labels": 7}, {"labels"}),
        ({"started_at": "x", "retry_of": 7, "id": 7}, {"started_at", "retry_of"}),
    ],
)
def test_a_job_that_cannot_be_read_has_an_end_that_is_told(
    broken: dict[str, Any], left_out: set[str]
) -> None:
    bus, address = Ear(), Ear()
    world = world_of(bus=bus)
    job = new_job(world, notify={"url": HOOK}, labels={"team": "a"})
    damaged(world, job, **broken)
    run_next(world)
    recover(world, address)
    [told] = ended_of(bus)
    assert ended_of(address) == [told]
    assert {"id": job.id, "tenant": TENANT, "subject": "s", "lane": "small"}.items() <= told.items()
    assert (told["state"], told["end_reason"]) == ("FAILED", "undecodable")
    assert (told["succeeded"], told["failed"], told["skipped"]) == (0, 0, 0)
    expected = {"total": 1, "labels": {"team": "a"}}
    assert {name: told.get(name) for name in expected} == {
        name: None if name in left_out else value for name, value in expected.items()
    }
    assert told["finished_at"].endswith("Z")
    assert "waiting_reason" not in told
    assert not left_out & told.keys()
    assert not rows(world)


def test_its_row_is_there_when_its_end_is() -> None:
    bus = Ear()
    world = world_of(bus=bus)
    job = new_job(world)
    damaged(world, job, params=7)
    bus.fails = Transient("down")
    run_next(world)
    assert [row["what"] for row in rows(world)] == ["ended"]
    bus.fails = None
    recover(world)
    assert len(ended_of(bus)) == 1


@pytest.mark.parametrize("unknown", ["operation", "succeeded", "created_at", "fence"])
def test_a_job_that_does_not_say_enough_of_itself_is_logged_instead(unknown: str) -> None:
    bus = Ear()
    world = world_of(bus=bus)
    job = new_job(world)
    damaged(world, job, **{unknown: ["broken"]})
    run_next(world)
    assert bus.said == ["created"]
    [logged] = [line for line in world.telemetry.lines if line.action == "end_not_told"]
    assert (logged.fields["job_id"], logged.fields["why"]) == (job.id, f"job item: {unknown}")


def test_an_end_that_was_told_before_is_not_told_again() -> None:
    bus = Ear()
    world = world_of(bus=bus)
    job = new_job(world)
    run_next(world)
    damaged(world, job, state="ENDED IN A NEWER WAY")
    world.queues[Lane.SMALL].send([message_for(job)])
    run_next(world)
    assert len(ended_of(bus)) == 1


def test_a_burial_in_two_steps_is_told_once_with_its_last() -> None:
    """A crash between the two leaves a job that has not ended."""
    bus = Ear()
    world = world_of(bus=bus)
    job = new_job(world)
    damaged(world, job, params=7, state="PAUSING")
    dying, store = process(world)
    store.after = nth(1, "bury", die)
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    with pytest.raises(Killed):
        on_message(dying, delivery, Worker("dies"))
    assert bus.said == ["created"]
    on_message(world, delivery, Worker("w"))
    assert [told["state"] for told in ended_of(bus)] == ["CANCELLED"]
