"""What the last release wrote is finished by this version, and what this version writes can be read
by the last release. ``tests/released`` has both sides of the release as JSON; the page about
upgrades says what follows when one of these tests has to change."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from handlers.aws.attributes import decode
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage.control_table import job_of
from handlers.jobs.words.event import EVENT_BUS
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.messages import Message
from handlers.jobs.words.ports import UploadAddress
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE
from handlers.jobs.words.writes import Item, Key, Put, Table
from handlers.testing.world import MemoryWorld, memory_world
from scripts.checks.released import moments
from scripts.checks.released.moments import LIMITS, MANY, MOMENTS, OPERATIONS, SINK, TENANT
from scripts.checks.released.source import VERSION
from tests.support.listeners import Ear
from tests.support.sinks import Index

FILE: Final = Path(__file__).parents[2] / "released" / f"{VERSION}.json"
RELEASE: Final = json.loads(FILE.read_text(encoding="utf-8"))
READS: Final = {
    "JOB": jsonschema_rs.validator_for(RELEASE["reads"]["job"]),
    "LEASE": jsonschema_rs.validator_for(RELEASE["reads"]["lease"]),
}
"""By sort key."""
NAMES: Final = [moment.make.__name__ for moment in MOMENTS]

NEW_FIELDS: Final = frozenset(
    {
        "tables",  # of an operation with a table among its parameters, which the release has not
    }
)
"""Fields of a job that the release does not read: it goes on as if they were not there, so each has
a reason why that does no harm."""
NEW_WORDS: Final[Mapping[str, frozenset[str]]] = {}
"""Words by the kind that they are of. The release leaves a job with one to this version for
``timing.rollout``; the change log says so."""


@dataclass(frozen=True)
class Sent(Message):
    """A message whose body is as it was written."""

    text: str = ""

    @property
    def body(self) -> str:
        return self.text


def loaded(at: Mapping[str, Any]) -> MemoryWorld:
    """A world of this version with everything as it was then."""
    world = memory_world(operations=OPERATIONS, limits=LIMITS)
    world.runtime.sleep(at["now"] - world.runtime.now())
    for table in Table:
        for each in at[table.value]:
            key = Key(each["pk"], each["sk"], table)
            world.store.transact("load", [Put(key, decode(each["item"]))])
    for lane in Lane:
        for each in at["messages"][lane.value]:
            world.queues[lane].send([Sent("", lane, each["group"], each["body"])])
    for name, content in at["payloads"].items():
        world.payloads.put(name, [base64.b64decode(content)])
    for name, file in at["uploads"].items():
        address = UploadAddress("memory:", {**file["notes"], "name": name})
        world.uploads.send(address, base64.b64decode(file["content"]))
    return replace(world, sinks={SINK: Index()}, listeners={EVENT_BUS: Ear()})


def jobs(world: MemoryWorld) -> list[Job]:
    found = world.store.snapshot().items()
    return [job_of(item) for key, item in found if key.sk == "JOB"]


def numbers(world: MemoryWorld) -> dict[str, object]:
    return {key.sk: item["n"] for key, item in world.store.snapshot(Table.RECORDS).items()}


def minutes(world: MemoryWorld) -> Iterator[None]:
    """Workers and recovery go on until every job has ended; after each of their minutes."""
    for _ in range(30):
        Recovery(world).run()
        for lane in Lane:
            for delivery in world.queues[lane].receive(10, 0):
                decision = on_message(world, delivery, Worker("w2"))
                apply_decision(world.queues[lane], delivery, decision)
        yield
        if not world.store.snapshot() or all(job.state.terminal for job in jobs(world)):
            return
        world.runtime.sleep(MINUTE)


def asked_for(world: MemoryWorld) -> None:
    """What a client does with a job that waits for one."""
    for job in jobs(world):
        if job.state is State.PAUSED:
            assert isinstance(control.resume(world, TENANT, job.id), Job)
        if job.state is State.FAILED:
            assert isinstance(control.retry(world, TENANT, job.id), Job)


# --- what the release wrote -------------------------------------------------------------------


def test_the_file_has_every_moment() -> None:
    assert sorted(RELEASE["moments"]) == sorted(NAMES)
    states = {job.state for each in RELEASE["moments"].values() for job in jobs(loaded(each))}
    assert states == set(State) - {State.PAUSING, State.CANCELLED}


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_the_release_wrote_is_finished(name: str) -> None:
    at = RELEASE["moments"][name]
    world = loaded(at)
    before = numbers(world)
    asked_for(world)
    for _ in minutes(world):
        pass
    assert {job.state for job in jobs(world)} == {State(at["state"])}
    changed = before if at["state"] == State.CANCELLED else dict.fromkeys(at["changed"], 2)
    assert numbers(world) == dict.fromkeys(MANY, 1) | changed
    for _ in range(3):  # what is cleaned up and told afterwards
        world.runtime.sleep(MINUTE)
        Recovery(world).run()
    assert not any(queue.snapshot() for queue in world.queues.values())
    assert not any(queue.snapshot() for queue in world.dead_letters.values())
    assert not world.payloads.names()
    leases = [item for key, item in world.store.snapshot().items() if key.sk == "LEASE"]
    assert leases
    assert not any("job_id" in lease for lease in leases)


def test_effects_and_events_that_the_release_left_open_are_sent() -> None:
    for name, place in (("settling", "sinks"), ("event_open", "listeners")):
        world = loaded(RELEASE["moments"][name])
        for _ in range(3):
            Recovery(world).run()
            world.runtime.sleep(MINUTE)
        [told] = getattr(world, place).values()
        assert told.documents if isinstance(told, Index) else told.heard


# --- what the release reads -------------------------------------------------------------------


def unreadable(items: Mapping[Key, Item]) -> Sequence[str]:
    """What the release would not read, in words."""
    return [
        f"{key.pk}: {error.message}"
        for key, item in items.items()
        if key.sk in READS
        for error in READS[key.sk].iter_errors(dict(item))
    ]


@pytest.mark.parametrize("moment", MOMENTS, ids=NAMES)
def test_the_release_reads_what_this_version_writes(moment: moments.Moment) -> None:
    world = loaded(moments.written(moment))
    assert unreadable(world.store.snapshot()) == []
    asked_for(world)
    for _ in minutes(world):
        assert unreadable(world.store.snapshot()) == []


@pytest.mark.parametrize(
    "damage", [{"state": "RESTING"}, {"waiting_reason": "moon"}, {"position": "1"}, {"fence": None}]
)
def test_what_the_release_does_not_read_is_seen(damage: Mapping[str, Any]) -> None:
    [(key, item)] = [
        (key, item)
        for key, item in loaded(RELEASE["moments"]["given_back"]).store.snapshot().items()
        if key.sk == "JOB"
    ]
    assert unreadable({key: item}) == []
    assert len(unreadable({key: {**item, **damage}})) == 1


def words(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    return {
        name: frozenset(each["enum"])
        for name, each in schema.get("$defs", {}).items()
        if "enum" in each
    }


def test_fields_and_words_that_the_release_does_not_know_are_listed_here() -> None:
    released, here = RELEASE["reads"]["job"], moments.reads()["job"]
    assert set(here["properties"]) - set(released["properties"]) == NEW_FIELDS
    known = words(released)
    new = {name: each - known.get(name, frozenset()) for name, each in words(here).items()}
    assert {name: each for name, each in new.items() if each} == NEW_WORDS
