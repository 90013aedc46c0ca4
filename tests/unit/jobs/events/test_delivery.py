"""Events that are put off: whoever failed a moment ago is not asked, and that is no try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from handlers.effects.listeners import BusListener
from handlers.jobs.events.delivery import EventDelivery
from handlers.jobs.events.rows import _row, event_of, row_key
from handlers.jobs.storage.transaction import Rejected
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.errors import NotAsked, Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, JobEvent, NotTaken
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Found, Update
from tests.support.jobs import TENANT, run_next
from tests.support.listeners import HOOK, Bus, Ear, event, failed, new_job, recover, rows, world_of

if TYPE_CHECKING:
    from handlers.testing.world import MemoryWorld


@dataclass
class Counting:
    """``Listener`` that never answers, and counts what it is asked to take."""

    asked: Counter[str] = field(default_factory=Counter)

    def deliver_event(self, event: JobEvent) -> None:
        self.asked[event.key] += 1
        raise Transient("time-out")


def parked(world: MemoryWorld) -> list[Mapping[str, Any]]:
    return [row for row in rows(world) if row.get("parked")]


def test_only_what_a_silent_address_was_asked_to_take_is_parked() -> None:
    address, tries, jobs = Counting(), 3, 5
    world = world_of(Limits(max_effect_tries=tries))
    for n in range(jobs):
        new_job(world, f"s{n}", notify={"url": HOOK})
    for _ in range(jobs * tries):
        recover(world, address, seconds=1000)
        for row in parked(world):
            assert address.asked[event_of(row).key] == tries
    assert len(parked(world)) == jobs


def test_what_is_put_off_waits_longer_each_time() -> None:
    world = world_of()
    for n in range(5):
        new_job(world, f"s{n}", notify={"url": HOOK})
    base = ms(world.timing.effect_retry_base)
    for times in range(1, 6):
        recover(world, Counting(), seconds=1000)
        for row in rows(world):
            before = row["tries"] + row.get("put_off", 0)
            assert before == times
            assert row["due_sk"] - world.runtime.now() >= (base << (times - 1)) // 2


def test_a_bus_that_is_left_alone_for_a_while_was_not_asked() -> None:
    world = world_of(bus=Ear(fails=Transient("down")))
    for n in range(3):
        new_job(world, f"s{n}")
    client = Bus([failed("ThrottlingException")])
    bus = BusListener(client, "changes", world.runtime)  # type: ignore[arg-type]  # the one call
    recover(replace(world, listeners={EVENT_BUS: bus}))
    assert len(client.entries) == 1
    assert sorted(row["tries"] for row in rows(world)) == [0, 0, 1]


def test_two_runs_that_put_an_event_off_do_it_once() -> None:
    world = world_of()
    new_job(world, notify={"url": HOOK})
    [found] = [Found(k, i) for k, i in world.store.snapshot().items() if k.sk.startswith("EVENT#")]
    run = EventDelivery(replace(world, listeners={ADDRESS: Ear()}), {TENANT})
    assert not run.deliver(found)
    with pytest.raises(Rejected):
        run.deliver(found)
    [row] = rows(world)
    assert (row["tries"], row["put_off"]) == (0, 1)


def test_an_event_nobody_takes_goes_with_the_history() -> None:
    world = world_of(bus=Ear(fails=Transient("down")))
    new_job(world)
    [row] = rows(world)
    assert row["expires_at_seconds"] == world.runtime.now() // 1000 + world.timing.history


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


def test_a_silent_address_does_not_hold_up_the_bus_nor_the_bus_the_address() -> None:
    """Of one tenant, in one run."""
    down = Transient("down")
    for fails, hears in ((ADDRESS, EVENT_BUS), (EVENT_BUS, ADDRESS)):
        ears = {name: Ear(fails=down if name == fails else None) for name in (ADDRESS, EVENT_BUS)}
        delivery = EventDelivery(replace(world_of(), listeners=ears))
        deliver(delivery, fails)
        assert deliver(delivery, hears)
        assert ears[hears].asked == 1


def deliver(delivery: EventDelivery, listener: str) -> bool:
    made = event(listener=listener, to=HOOK)
    store = delivery.world.store
    store.transact("load", [_row(delivery.world, made)])
    item = store.get(row_key(made))
    assert item is not None
    return delivery.deliver(Found(row_key(made), item))


def test_what_was_not_asked_is_put_off_by_the_run_that_claimed_it_alone() -> None:
    @dataclass
    class Meanwhile:
        """Another run takes the row while the bus has yet to be asked."""

        def deliver_event(self, event: JobEvent) -> None:
            other = Update(row_key(event), add={"tries": 1})
            world.store.transact("other", [other])
            raise NotAsked("left alone")

    world = world_of(bus=Meanwhile())
    with pytest.raises(Rejected):
        deliver(EventDelivery(world), EVENT_BUS)
    [row] = rows(world)
    assert (row["tries"], "put_off" in row) == (2, False)
