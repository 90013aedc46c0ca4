"""Conditions of the outbox: rows of effects, events and dispatches; and of shared counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.effects.rows import claim_effect, record_done, record_run, replay_effect
from handlers.jobs.effects.sink_pause import PausingSink
from handlers.jobs.events.delivery import EventDelivery, replay_event
from handlers.jobs.events.rows import event_of
from handlers.jobs.lifecycle.dispatch import NOT_SENT, replay_dispatch, unsent_of_job
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.storage.rates import take_grant
from handlers.jobs.storage.shards import recording_shards
from handlers.jobs.transitions.shares import charge_share, share_key
from handlers.jobs.words.effect import Delivered, EffectRun
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, NotTaken
from handlers.jobs.words.job import Lane
from handlers.jobs.words.rates import RateLimit, Unit
from handlers.jobs.words.turns import Share
from handlers.jobs.words.writes import Found, Index, Key, Put, Update
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.runtime import START
from handlers.testing.world import memory_world
from tests.support.effect_rows import claimed, with_effect
from tests.support.guards import (
    GONE,
    Asked,
    Case,
    Setup,
    absent,
    accept,
    by_name,
    check,
    moved_job,
    not_covered,
    refuse,
    sends,
)
from tests.support.jobs import fill, new_job
from tests.support.listeners import HOOK, Ear
from tests.support.listeners import new_job as told_job
from tests.support.listeners import world_of as told_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.messages import Message
    from handlers.jobs.words.writes import Item
    from handlers.testing.world import MemoryWorld

SMALL: Final = Lane.SMALL
DUE: Final = Index.DUE.sk
EFFECT: Final = "EFFECT"
EVENT: Final = "EVENT#created#address"
TOLD: Final = "EVENT#created#event_bus"
DONE: Final = EffectRun(todo={}, refused=())
FAILED: Final = EffectRun(todo={"index": None}, refused=(("index", "r0000", "no"),), error="down")
PUT_OFF: Final = EffectRun(todo={"index": None}, refused=(), put_off=True)


# --- effects ----------------------------------------------------------------------------------


def claim_of_effect() -> Setup:
    world, effect = with_effect()
    item = world.store.get(control_table.effect_key(effect.job_id, 0)) or {}
    at = int(str(item[DUE]))
    return Setup(world, "claim_effect", lambda: claim_effect(world, effect, at))


def effects_done_together() -> Setup:
    world, effect = with_effect()
    return Setup(world, "effects_done", lambda: record_done(world, [effect]))


def effect_done() -> Setup:
    world, effect = claimed()
    return Setup(world, "effect_done", lambda: record_run(world, effect, DONE, SMALL))


def effect_done_without_a_claim() -> Setup:
    world, effect = with_effect()
    return Setup(world, "effect_done", lambda: record_run(world, effect, DONE, SMALL))


def last_effect_done() -> Setup:
    settling: Item = {"state": "SETTLING", "settles_to": "SUCCEEDED", "effects_open": 1}
    world, effect = claimed(settling)
    return Setup(world, "last_effect_done", lambda: record_run(world, effect, DONE, SMALL))


def effect_again() -> Setup:
    world, effect = claimed()
    return Setup(world, "effect_again", lambda: record_run(world, effect, FAILED, SMALL))


def effect_put_off() -> Setup:
    world, effect = claimed()
    return Setup(world, "effect_put_off", lambda: record_run(world, effect, PUT_OFF, SMALL))


def effect_parked() -> Setup:
    most = memory_world().limits.max_effect_tries
    world, effect = claimed(tries=most - 1)
    return Setup(world, "park_effect", lambda: record_run(world, effect, FAILED, SMALL))


def effect_replayed() -> Setup:
    world, effect = with_effect(parked=True)
    return Setup(world, "unpark_effect", lambda: replay_effect(world, effect))


# --- events -----------------------------------------------------------------------------------


def event(
    *, fails: Exception | None = None, unanswered: bool = False
) -> tuple[EventDelivery, Found]:
    """An event for an address, and the delivery of one run of recovery."""
    world = told_world()
    told_job(world, notify={"url": HOOK})
    [found] = [Found(k, i) for k, i in world.store.snapshot().items() if k.sk.startswith("EVENT#")]
    ear = Ear(fails=fails)
    delivery = EventDelivery(replace(world, listeners={ADDRESS: ear}))
    if unanswered:
        delivery._unanswered.add(str(found.item["tenant"]))
    return delivery, found


def delivers(action: str, delivery: EventDelivery, found: Found) -> Setup:
    return Setup(delivery.world, action, lambda: delivery.deliver(found))  # type: ignore[arg-type]


def claim_of_event() -> Setup:
    return delivers("claim_event", *event())


def event_told() -> Setup:
    return delivers("event_told", *event())


def event_again() -> Setup:
    return delivers("event_again", *event(fails=Transient("down")))


def event_parked() -> Setup:
    return delivers("park_event", *event(fails=NotTaken("no")))


def event_put_off() -> Setup:
    return delivers("put_event_off", *event(unanswered=True))


def event_replayed() -> Setup:
    delivery, found = event()
    world = delivery.world
    world.store.transact("load", [Update(found.key, set={"parked": True})])
    again = event_of(found.item)
    return Setup(world, "unpark_event", lambda: replay_event(world, again))  # type: ignore[arg-type]


def event_told_at_once() -> Setup:
    world = told_world(bus=Ear())
    return Setup(world, "event_told", lambda: told_job(world))


# --- what processes share ---------------------------------------------------------------------


def claim_of_dispatch() -> Setup:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    row: Item = {"job_id": job.id, "lane": "small", "tenant": job.tenant, "tries": 0}
    due = control_table.due(control_table.DISPATCH, job.id, START, world.due_shards)
    world.store.transact("load", [Put(control_table.dispatch_key(job.id, 2), {**row, **due})])
    return Setup(world, "claim_dispatch", Recovery(world).run)


class NoQueue(MemoryLaneQueue):
    """A queue that takes no message."""

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        return frozenset(range(len(messages)))


def unsent(**row: Any) -> tuple[MemoryWorld, Job]:
    """A queued job whose newest dispatch is due and cannot be sent. row: attributes of its row."""
    whole = memory_world()
    queue = NoQueue(whole.runtime, name="small")
    world = replace(whole, queues={**whole.queues, SMALL: queue})
    job = new_job(world, fill(world, 3))
    key = control_table.dispatch_key(job.id, job.dispatches)
    due = control_table.due(control_table.DISPATCH, job.id, START, world.due_shards)
    world.store.transact("load", [Update(key, set={**due, **row})])
    return world, job


def dispatch_later() -> Setup:
    world, _ = unsent()
    return Setup(world, "dispatch_later", Recovery(world).run)


def dispatch_parked() -> Setup:
    world, _ = unsent(tries=memory_world().limits.max_dispatch_tries - 1)
    return Setup(world, "park_dispatch", Recovery(world).run)


def dispatch_replayed() -> Setup:
    world, job = unsent(parked=True)
    world.store.transact("load", [Update(control_table.job_key(job.id), set={"message": NOT_SENT})])
    [row] = unsent_of_job(world, job.id)
    return Setup(world, "unpark_dispatch", lambda: replay_dispatch(world, row))


def first_charge() -> Setup:
    return sends(memory_world(), charge_share("acme", Share(), Share(used=5, at=START)))


def charge() -> Setup:
    world = memory_world()
    world.store.transact("load", [Put(share_key("acme"), {"used": 3, "at": START})])
    return sends(world, charge_share("acme", Share(used=3, at=START), Share(used=5, at=START + 1)))


def first_grant() -> Setup:
    world = memory_world()
    limit = RateLimit("lane#bulk", Unit.RECORDS, 10)
    return Setup(world, "take_grant", lambda: take_grant(world, limit))


def grant() -> Setup:
    world = memory_world()
    key = Key("RATE#lane#bulk", Unit.RECORDS.value)
    world.store.transact("load", [Put(key, {"granted_until": START})])
    limit = RateLimit("lane#bulk", Unit.RECORDS, 10)
    return Setup(world, "take_grant", lambda: take_grant(world, limit))


def shards() -> Setup:
    world = memory_world()
    return Setup(world, "note_shards", lambda: recording_shards(world))


class _Asking:
    """A sink that asks for a pause."""

    def deliver(self, batch: Batch) -> Delivered:
        return Delivered(retry_after_ms=60_000)


def sink_pause() -> Setup:
    world = memory_world()
    sink = PausingSink(world, "index", _Asking())
    return Setup(world, "pause_sink", lambda: sink.deliver(None))  # type: ignore[arg-type]


SETUPS: Final = by_name(
    claim_of_effect,
    effects_done_together,
    effect_done,
    effect_done_without_a_claim,
    last_effect_done,
    effect_again,
    effect_put_off,
    effect_parked,
    effect_replayed,
    claim_of_event,
    event_told,
    event_again,
    event_parked,
    event_put_off,
    event_replayed,
    event_told_at_once,
    claim_of_dispatch,
    dispatch_later,
    dispatch_parked,
    dispatch_replayed,
    first_charge,
    charge,
    first_grant,
    grant,
    shards,
    sink_pause,
)


def taken(setup: str, item: str) -> list[Case]:
    """A row that another run has claimed, or finished with."""
    return [
        refuse(setup, item, tries=Asked(1)),
        refuse(setup, item, **{DUE: Asked(1)}),
        absent(setup, item, refused=True),
    ]


def not_the_last(setup: str) -> list[Case]:
    return [
        accept(setup, "JOB", effects_open=1),
        accept(setup, "JOB", state="SETTLING"),
        refuse(setup, "JOB", state="SETTLING", effects_open=1),
        absent(setup, "JOB", refused=True),
    ]


CASES: Final[list[Case]] = [
    *taken("claim of effect", EFFECT),
    refuse("effects done together", EFFECT, tries=Asked(1)),
    accept("effects done together", EFFECT, **{DUE: START}),
    refuse("effects done together", "JOB", state="SETTLING"),
    absent("effects done together", "JOB", refused=True),
    *taken("effect done", EFFECT),
    *not_the_last("effect done"),
    refuse("effect done without a claim", EFFECT, tries=Asked(1)),
    accept("effect done without a claim", EFFECT, **{DUE: START}),
    *not_the_last("effect done without a claim"),
    *taken("last effect done", EFFECT),
    refuse("last effect done", "JOB", state="SUCCEEDED"),
    refuse("last effect done", "JOB", effects_open=2),
    refuse("last effect done", "JOB", effects_parked=1),
    *taken("effect again", EFFECT),
    absent("effect again", "JOB", refused=True),
    *taken("effect put off", EFFECT),
    *taken("effect parked", EFFECT),
    refuse("effect parked", "JOB", state="SETTLING"),
    refuse("effect parked", "JOB", effects_open=Asked(1)),
    refuse("effect parked", "JOB", effects_open=Asked(-1)),
    refuse("effect replayed", EFFECT, parked=GONE),
    refuse("effect replayed", "JOB", state="SETTLING"),
    *taken("claim of event", EVENT),
    *taken("event told", EVENT),
    *taken("event again", EVENT),
    *taken("event parked", EVENT),
    *taken("event put off", EVENT),
    refuse("event replayed", EVENT, parked=GONE),
    refuse("event told at once", TOLD, tries=Asked(1)),
    *taken("claim of dispatch", "DISPATCH"),
    *taken("dispatch later", "DISPATCH"),
    *taken("dispatch parked", "DISPATCH"),
    *moved_job("dispatch parked"),
    refuse("dispatch replayed", "DISPATCH", parked=GONE),
    *moved_job("dispatch replayed"),
    refuse("first charge", "SHARE#bulk", at=START),
    refuse("charge", "SHARE#bulk", at=Asked(1)),
    refuse("charge", "SHARE#bulk", used=Asked(1)),
    refuse("first grant", "records", granted_until=START),
    refuse("grant", "records", granted_until=Asked(1)),
    refuse("shards", "SHARDS", most=Asked(0)),
    accept("shards", "SHARDS", most=Asked(-1)),
    refuse("sink pause", "PAUSE", until=Asked(0)),
    accept("sink pause", "PAUSE", until=Asked(-1)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_c80_a_write_on_a_row_needs_its_conditions(case: Case) -> None:
    check(SETUPS, case)


def test_c80_each_condition_of_a_row_s_write_has_a_case() -> None:
    assert not_covered(SETUPS, CASES) == []
