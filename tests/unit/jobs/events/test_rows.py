"""What is told of jobs: which events, to whom, once and again, and that nothing waits for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handlers.effects.listeners import REST, AddressListener, BusListener
from handlers.jobs.events.rows import row_key
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.submit import submit
from handlers.jobs.selection.preview import preview
from handlers.jobs.selection.request import BadRequest, Unprocessable
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, EventType, NotTaken
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.testing.runtime import ManualRuntime
from tests.support.jobs import TENANT, run_next
from tests.support.listeners import (
    HOOK,
    Bus,
    Ear,
    event,
    failed,
    new_job,
    recover,
    rows,
    wanted,
    world_of,
)

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
    world = world_of(bus=bus)
    job = new_job(world, params={"field": "none", "add": 1}, tolerated_failure_percent=0)
    run_next(world)
    control.retry(world, TENANT, job.id)
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


def test_an_event_is_tried_later_and_later_and_parked_at_last() -> None:
    bus = Ear(fails=Transient("down"))
    world = world_of(Limits(max_effect_tries=3), bus=bus)
    new_job(world)
    for _ in range(6):
        recover(world, seconds=1000)
    assert bus.asked == 1 + 3
    [row] = rows(world)
    assert row["parked"] is True
    assert row["last_error"] == "down"
    assert world.telemetry.total(Metric.EVENTS_PARKED) == 1


def test_what_is_refused_for_good_is_parked_at_once() -> None:
    bus = Ear(fails=NotTaken("answered 410"))
    world = world_of(bus=bus)
    new_job(world)
    recover(world)
    recover(world, seconds=1000)
    assert bus.asked == 2
    assert rows(world)[0]["last_error"] == "answered 410"


def test_a_bus_that_is_no_longer_deployed_leaves_no_row() -> None:
    world = world_of(bus=Ear(fails=Transient()))
    new_job(world)
    recover(replace(world, listeners={}))
    assert not rows(world)


# --- addresses --------------------------------------------------------------------------------


def test_an_address_hears_from_recovery_alone() -> None:
    address = Ear()
    world = world_of()
    job = new_job(world, notify={"url": HOOK})
    run_next(world)
    assert len(rows(world)) == 3
    recover(world, address, seconds=0)
    assert sorted(address.said) == ["created", "ended", "started"]
    assert {event.to for event in address.heard} == {HOOK}
    assert not rows(world)
    assert {event.job_id for event in address.heard} == {job.id}


def test_bus_and_address_fail_apart() -> None:
    bus, address = Ear(), Ear(fails=Transient("down"))
    world = world_of(bus=bus)
    new_job(world, notify={"url": HOOK})
    assert bus.said == ["created"]
    recover(world, address)
    assert [row["listener"] for row in rows(world)] == [ADDRESS]


def test_jobs_that_recovery_admits_do_not_wait_for_their_tenants_address() -> None:
    address = Ear(fails=Transient("time-out"))
    world = world_of(Limits(tenant_slots_small=1))
    for n in range(5):
        new_job(world, f"s{n}", notify={"url": HOOK})
    set_slots(world, TENANT, Lane.SMALL, 5)
    recover(world, address)
    assert [row["what"] for row in rows(world)].count("admitted") == 4
    assert address.asked == 1


def test_a_silent_tenant_is_waited_for_once_in_a_run() -> None:
    address = Ear(fails=Transient("time-out"))
    world = world_of()
    for n in range(5):
        new_job(world, f"s{n}", notify={"url": f"https://host-{n}.example.org"})
    recover(world, address)
    assert address.asked == 1
    assert sorted(row["tries"] for row in rows(world)) == [0, 0, 0, 0, 1]
    address.fails = None
    recover(world, address, seconds=1000)
    assert len(address.heard) == 5


GOOD = ["https://example.org", "https://example.org:8443/a?b=c", "https://93.184.216.34/x"]
PRIVATE = [
    "https://10.0.0.1/",
    "https://127.0.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "https://[fd00::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://intranet/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://a.b.c.0x7f/",
    "http://example.org/",
]
MALFORMED = ["example.org", "ftp://a.org", "https://u:w@a.org", "https://", "x" * 3000]


@pytest.mark.parametrize("url", GOOD)
def test_public_addresses_are_taken(url: str) -> None:
    assert new_job(world_of(), notify={"url": url}).notify == url


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_refused_before_anything_is_made(url: str) -> None:
    world = world_of()
    before = world.store.snapshot()
    with pytest.raises(Unprocessable) as refused:
        submit(world, TENANT, wanted(world, notify={"url": url}))
    assert refused.value.field == "notify.url"
    with pytest.raises(Unprocessable):
        preview(world, TENANT, wanted(world, notify={"url": url}))
    assert world.store.snapshot() == before


@pytest.mark.parametrize("url", MALFORMED)
def test_what_is_no_address_is_a_bad_request(url: str) -> None:
    with pytest.raises(BadRequest) as refused:
        wanted(world_of(), notify={"url": url})
    assert refused.value.field == "notify.url"


def test_a_deployment_that_tells_no_addresses_says_so() -> None:
    world = replace(world_of(), address_problem=None)
    with pytest.raises(Unprocessable, match="tells no addresses"):
        submit(world, TENANT, wanted(world, notify={"url": HOOK}))


# --- the listeners themselves -----------------------------------------------------------------


def test_the_bus_gets_an_entry_of_its_kind() -> None:
    client = Bus([{"FailedEntryCount": 0}])
    BusListener(client, "changes", ManualRuntime()).tell(event())  # type: ignore[arg-type]  # the one call
    [entry] = client.entries
    assert (entry["EventBusName"], entry["DetailType"]) == ("changes", "Job Ended")
    assert entry["Detail"] == '{"key":"k"}'


def test_a_bus_that_fails_is_left_alone_for_a_while() -> None:
    runtime = ManualRuntime()
    client = Bus([failed("ThrottlingException"), {"FailedEntryCount": 0}])
    listener = BusListener(client, "changes", runtime)  # type: ignore[arg-type]  # the one call
    for _ in range(3):
        with pytest.raises(Transient):
            listener.tell(event())
    assert len(client.entries) == 1
    runtime.sleep(REST)
    listener.tell(event())
    assert len(client.entries) == 2


def test_a_bus_may_refuse_for_good() -> None:
    client = Bus([failed("MalformedDetail")])
    with pytest.raises(NotTaken, match="MalformedDetail"):
        BusListener(client, "changes", ManualRuntime()).tell(event())  # type: ignore[arg-type]  # the one call


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1"])
def test_a_name_that_points_inside_is_not_called(address: str) -> None:
    listener = AddressListener(lambda: b"s" * 16, ManualRuntime(), ask=lambda _h, _p: [address])
    with pytest.raises(Transient, match="must not be called"):
        listener.tell(event(listener=ADDRESS, to=HOOK))


def test_rows_of_one_job_lie_beside_it() -> None:
    assert row_key(event()) == control_table.event_key("j", 7, "ended", EVENT_BUS)
    assert row_key(event()).pk == control_table.job_key("j").pk
