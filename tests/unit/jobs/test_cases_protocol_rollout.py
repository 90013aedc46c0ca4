"""Cases of jobs that newer code made and older workers meet (C82)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage, apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.dead_letters import Fate, read_letter, redrive
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.rollout import left_to_newer
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.operation import Change, Operation
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import SECOND, ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, free, now

if TYPE_CHECKING:
    from handlers.jobs.words.operation import Fields, Outcome
    from handlers.jobs.words.writes import Item

ROLLOUT: Final = 900
TIMING: Final = SHORT.model_copy(update={"rollout": ROLLOUT})
IDS: Final = ["r1", "r2", "r3"]
SMALL: Final = Lane.SMALL


class Older(BaseModel):
    model_config = ConfigDict(extra="forbid")

    by: int = 1
    way: Literal["up"] = "up"


class Newer(Older):
    twice: bool = False
    way: Literal["up", "down"] = "up"  # type: ignore[assignment]  # a word more than before


def bump(fields: Fields, parameters: BaseModel) -> Outcome:
    assert isinstance(parameters, Older)
    return Change({"n": int(str(fields["n"])) + parameters.by})


def operation(name: str, parameters: type[BaseModel]) -> Operation:
    return Operation(name, parameters, bump, lambda _: frozenset({"n"}))


NEWER: Final = {"bump": operation("bump", Newer), "new": operation("new", Newer)}
OLDER: Final = {"bump": operation("bump", Older)}
KINDS: Final = {
    "operation": EndReason.UNKNOWN_OPERATION,
    "parameter": EndReason.BAD_PARAMETERS,
    "value": EndReason.BAD_PARAMETERS,
    "query": EndReason.BAD_QUERY,
    "waiting_reason": EndReason.UNDECODABLE,
    "paced_by": EndReason.UNDECODABLE,
    "traversal": EndReason.UNDECODABLE,
    "lane": EndReason.UNDECODABLE,
    "state": EndReason.UNDECODABLE,
}
"""What an older worker does not know, and as what the job fails in the end."""
IN_THE_REQUEST: Final = {"operation", "parameter", "value"}
"""These are unknown by the request itself."""


class Site:
    """Two versions of the workers side by side, and a job that only the newer one understands."""

    def __init__(self, kind: str) -> None:
        self.newer = memory_world(operations=NEWER, timing=TIMING)
        self.older: MemoryWorld = replace(self.newer, operations=OLDER)
        self.kind = kind
        self.newer.records.load(TENANT, {id_: {"n": 1, "version": 1} for id_ in IDS})
        body: dict[str, Any] = {"operation": "bump", "subject": "s", "ids": IDS}
        if kind == "operation":
            body["operation"] = "new"
        if kind == "parameter":
            body["params"] = {"twice": True}
        if kind == "value":
            body["params"] = {"way": "down"}
        created = submit(self.newer, TENANT, accept(parse(json.dumps(body)), NEWER, max_ids=100))
        assert isinstance(created, Created)
        self.job = created.job
        self.made_unknown()

    def made_unknown(self) -> None:
        """What newer code has written: a word, or a filter, that this code does not know."""
        if self.kind == "query":
            self._set(query='{"all":[{"field":"n","op":"sounds_like","value":"x"}]}')
        elif self.kind not in IN_THE_REQUEST:
            self._set(**{self.kind: "a word of a newer version"})

    def made_known(self) -> None:
        """As newer code reads it, for a kind of which this code is the older one."""
        known: dict[str, Any] = {"lane": self.job.lane.value, "state": self.job.state.value}
        if self.kind in known:
            self._set(**{self.kind: known[self.kind]})
        elif self.kind not in IN_THE_REQUEST:
            self._set(self.kind)

    def _set(self, *gone: str, **to: Any) -> None:
        key = control_table.job_key(self.job.id)
        self.newer.store.transact("newer", [Update(key, set=to, remove=gone)])

    @property
    def item(self) -> Item:
        item = self.newer.store.get(control_table.job_key(self.job.id))
        assert item is not None
        return item

    def serve(self, world: MemoryWorld, name: str) -> list[object]:
        decided: list[object] = []
        for delivery in world.queues[SMALL].receive(10, 0):
            decision = on_message(world, delivery, Worker(name))
            apply_decision(world.queues[SMALL], delivery, decision)
            decided.append(decision)
        return decided

    def only_older(self, seconds: float) -> list[object]:
        """For so long, older workers and an older recovery are all there is."""
        decided: list[object] = []
        for _ in range(round(seconds)):
            decided += self.serve(self.older, "older")
            Recovery(self.older).run()
            self.older.runtime.sleep(SECOND)
        return decided


@pytest.mark.parametrize("kind", KINDS)
def test_c82_a_job_that_a_worker_does_not_understand_waits_for_a_newer_one(kind: str) -> None:
    site = Site(kind)
    decided = site.only_older(ROLLOUT / 2)
    assert len(decided) > 10
    assert {type(each) for each in decided} <= {KeepMessage, DeleteMessage}
    assert site.item.get("attempt", 0) == 0
    assert site.item["state"] == (State.QUEUED if kind != "state" else "a word of a newer version")
    assert not site.older.dead_letters[SMALL].snapshot()
    assert site.newer.telemetry.total(Metric.NOT_UNDERSTOOD) == 1

    site.made_known()
    site.newer.runtime.sleep(ms(TIMING.small.visibility))
    for _ in range(3):
        site.serve(site.newer, "newer")
    done = now(site.newer, site.job)
    assert (done.state, done.succeeded, done.attempt) == (State.SUCCEEDED, len(IDS), 1)
    assert done.not_understood_since is None
    records = site.newer.records.read(TENANT, IDS).values()
    assert {record.fields["n"] for record in records} == {2}


@pytest.mark.parametrize("kind", KINDS)
def test_c82_a_job_that_no_worker_understands_fails_after_the_rollout(kind: str) -> None:
    site = Site(kind)
    site.only_older(ROLLOUT - 1)
    assert site.item["state"] != State.FAILED
    site.only_older(3 * TIMING.small.visibility)
    assert (site.item["state"], site.item["end_reason"]) == (State.FAILED, KINDS[kind])
    assert site.item.get("attempt", 0) == 0
    if KINDS[kind] is EndReason.UNDECODABLE:
        assert kind in str(site.item["message"])
    else:
        assert f"no worker that received the job in {ROLLOUT} s" in str(site.item["message"])
    assert not site.older.dead_letters[SMALL].snapshot()
    if kind != "lane":
        assert free(site.older, site.job)


@pytest.mark.parametrize("kind", ["operation", "parameter", "waiting_reason"])
def test_c82_a_job_whose_newer_worker_died_is_left_to_the_next_one(kind: str) -> None:
    site = Site(kind)
    site.made_known()
    begun = begin(site.newer, site.job, "newer")
    site.made_unknown()
    site.only_older(ROLLOUT / 3)
    assert (site.item["state"], site.item["attempt"]) == (State.RUNNING, begun.attempt)
    site.made_known()
    site.newer.runtime.sleep(ms(TIMING.small.visibility))
    site.serve(site.newer, "next")
    assert now(site.newer, site.job).state is State.SUCCEEDED
    assert now(site.newer, site.job).attempt == 2


def test_c82_a_job_is_counted_anew_after_a_newer_worker_had_it() -> None:
    """And so is one that is tried again after it failed: each has the whole time."""
    site = Site("operation")
    site.only_older(ROLLOUT / 2)
    begin(site.newer, now(site.newer, site.job), "newer")
    site.only_older(ROLLOUT / 2 + TIMING.small.lease_ttl + 3 * TIMING.small.visibility)
    assert site.item["state"] == State.RUNNING
    site.only_older(ROLLOUT)
    failed = now(site.older, site.job)
    assert failed.end_reason is EndReason.UNKNOWN_OPERATION
    assert isinstance(control.retry(site.newer, TENANT, failed.id), Job)
    site.only_older(ROLLOUT / 2)
    assert now(site.older, site.job).state is State.QUEUED


def test_c82_a_cancel_needs_no_worker_that_understands_the_job() -> None:
    site = Site("operation")
    site.only_older(10)
    control.cancel(site.older, TENANT, site.job.id)
    site.only_older(3 * TIMING.small.visibility)
    assert now(site.older, site.job).state is State.CANCELLED
    assert free(site.older, site.job)


def test_c82_a_redrive_leaves_a_job_to_newer_workers_too() -> None:
    site = Site("waiting_reason")
    [delivery] = site.older.queues[SMALL].receive(1, 0)
    letter = read_letter(site.older, delivery)
    told = redrive(site.older, site.older.queues[SMALL], letter)
    assert (told.fate, site.item["state"]) == (Fate.REFUSED, State.QUEUED)
    assert "newer version" in told.why


@pytest.mark.parametrize("damage", [{"position": -1}, {"state": 7}, {"waiting_reason": ["x"]}])
def test_c82_a_job_that_is_damaged_waits_for_nobody(damage: dict[str, Any]) -> None:
    """No version can read it: it ends at once, as ever."""
    site = Site("operation")
    site._set(**damage)
    assert [type(each) for each in site.serve(site.older, "older")] == [DeleteMessage]
    assert site.item["end_reason"] == EndReason.UNDECODABLE


def test_c82_a_stamp_does_not_touch_a_job_that_a_newer_worker_has_begun() -> None:
    site = Site("operation")
    read = control_table.job_of(site.item)
    begin(site.newer, read, "newer")
    before = site.item
    as_read: Item = {"state": read.state.value, "fence": read.fence}
    assert left_to_newer(site.older, site.job.id, as_read, "unknown")
    assert site.item == before
