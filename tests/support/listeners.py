"""Listeners of a job's events, and worlds that tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from handlers.effects.addresses import problem_of
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, EventType, JobEvent
from handlers.jobs.words.job import Job
from handlers.jobs.words.limits import Limits
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT

if TYPE_CHECKING:
    from handlers.jobs.selection.request import Accepted
    from handlers.jobs.words.ports import Listener

HOOK: Final = "https://example.org/jobs"


@dataclass
class Ear:
    """``Listener`` that keeps what it hears, and fails while it is told to."""

    heard: list[JobEvent] = field(default_factory=list)
    fails: Exception | None = None
    asked: int = 0

    def deliver_event(self, event: JobEvent) -> None:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        self.heard.append(event)

    @property
    def said(self) -> list[str]:
        return [event.what.value for event in self.heard]


def world_of(limits: Limits | None = None, **listeners: Listener) -> MemoryWorld:
    world = memory_world(limits=limits)
    world.records.load(TENANT, {"a": {"price": 10, "version": 1}})
    return replace(
        world,
        listeners={EVENT_BUS if name == "bus" else name: each for name, each in listeners.items()},
        address_problem=lambda url: problem_of(url, loopback=False),
    )


def wanted(world: MemoryWorld, subject: str = "s", **more: Any) -> Accepted:
    body = {
        "operation": "adjust_number",
        "subject": subject,
        "params": {"field": "price", "add": 1},
        "ids": ["a"],
        **more,
    }
    return accept(parse(json.dumps(body)), world.operations, max_ids=10)


def new_job(world: MemoryWorld, subject: str = "s", **more: Any) -> Job:
    world.runtime.sleep(1)
    made = submit(world, TENANT, wanted(world, subject, **more))
    assert isinstance(made, Created)
    return made.job


def recover(world: MemoryWorld, ear: Listener | None = None, seconds: int = 60) -> None:
    """A run of recovery, which also calls addresses."""
    world.runtime.sleep(seconds * 1000)
    more = {} if ear is None else {ADDRESS: ear}
    Recovery(replace(world, listeners={**world.listeners, **more})).run()


def rows(world: MemoryWorld) -> list[Mapping[str, Any]]:
    found = world.store.snapshot().items()
    return [item for key, item in found if key.sk.startswith("EVENT#")]


def event(**changed: Any) -> JobEvent:
    made = JobEvent("j", TENANT, "small", 7, EventType.ENDED, EVENT_BUS, None, '{"key":"k"}')
    return replace(made, **changed)


@dataclass
class Bus:
    """Of EventBridge, the one call."""

    answers: list[Mapping[str, Any]]
    entries: list[Mapping[str, Any]] = field(default_factory=list)

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:  # noqa: N803  AWS's name
        self.entries += Entries
        return self.answers.pop(0)


def failed(code: str) -> Mapping[str, Any]:
    return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "m"}]}
