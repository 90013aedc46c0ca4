"""The rows of effects: tried again, parked, replayed, and the end of a job that waits for them."""

from __future__ import annotations

import json

import pytest

from handlers.jobs.effects.rows import replay_effect
from handlers.jobs.effects.run import effect_of_item
from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.replay_effects import open_effects_of_all, replay_one
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import EndReason, Job, Lane, Waiting
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from tests.support.jobs import TENANT, now
from tests.support.sinks import Index, a_world, recover, run_job


def test_a_sink_that_is_down_delays_the_end_but_not_the_subject() -> None:
    index = Index(failures=4)
    world = a_world(index)
    job = run_job(world, 12)
    assert (job.state, job.succeeded, job.settles_to) == (State.SETTLING, 12, State.SUCCEEDED)
    again = json.dumps({"operation": "bump", "subject": "s", "ids": ["r000"]})
    request = accept(parse(again), world.operations, max_ids=1000)
    assert isinstance(submit(world, TENANT, request), Created)
    recover(world, 12)
    ended = now(world, job)
    assert (ended.state, ended.effects_open, ended.effects_done) == (State.SUCCEEDED, 0, 3)
    assert len(index.documents) == 12
    assert ended.finished_at is not None


def test_records_refused_for_good_are_listed_and_their_neighbours_done() -> None:
    index = Index(refuses=frozenset({"r003"}))
    world = a_world(index)
    job = run_job(world, 12)
    assert (job.state, job.effects_refused) == (State.SUCCEEDED, 1)
    assert len(index.documents) == 11
    [row] = world.store.query_partition(f"JOB#{job.id}", sk_prefix="REFUSED#").found
    assert row.item["refused"] == [{"sink": "index", "id": "r003", "reason": "refused"}]


def test_c100_what_is_refused_for_good_is_counted_for_the_alarm() -> None:
    world = a_world(Index(refuses=frozenset({"r001", "r003"})))
    run_job(world, 12)
    assert world.telemetry.total(Metric.EFFECTS_REFUSED) == 2
    [line] = [line for line in world.telemetry.lines if line.action == "effect_refused"]
    assert [line.fields[name] for name in ("record_id", "why", "number")] == ["r001", "refused", 2]


def test_an_effect_tried_too_often_is_parked_and_replayed_when_asked() -> None:
    index = Index(failures=10_000)
    world = a_world(index, max_effect_tries=3)
    job = run_job(world, 4)
    recover(world, 10)
    parked = now(world, job)
    assert (parked.state, parked.effects_open, parked.effects_parked) == (State.SETTLING, 0, 1)
    assert parked.waiting_reason is Waiting.EFFECTS_PARKED
    index.failures = 0
    recover(world, 3)
    assert now(world, job).state is State.SETTLING
    [row] = world.store.query_partition(f"JOB#{job.id}", sk_prefix="EFFECT#").found
    replay_effect(world, effect_of_item(row.item))
    recover(world, 2)
    ended = now(world, job)
    assert (ended.state, ended.effects_parked, ended.effects_done) == (State.SUCCEEDED, 0, 1)


def test_a_job_that_settles_to_failed_keeps_its_ids_for_a_retry() -> None:
    index = Index(failures=1)
    world = a_world(index)
    ids = [f"r{n:05}" for n in range(5000)]
    world.records.load(TENANT, {ids[0]: {"n": 1, "version": 1}, ids[1]: {"n": "x", "version": 1}})
    content = {"operation": "bump", "subject": "s", "ids": ids, "tolerated_failure_percent": 0}
    created = submit(world, TENANT, accept(content, world.operations, max_ids=5000))
    assert isinstance(created, Created)
    assert created.job.payload is not None
    [delivery] = world.queues[Lane.BULK].receive(1, 0)
    assert isinstance(on_message(world, delivery, Worker("w")), DeleteMessage)
    job = now(world, created.job)
    assert (job.state, job.settles_to) == (State.SETTLING, State.FAILED)
    recover(world, 3)
    assert now(world, job).state is State.FAILED
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    [delivery] = world.queues[Lane.BULK].receive(1, 0)
    assert isinstance(on_message(world, delivery, Worker("w")), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.TOO_MANY_FAILED)


@pytest.mark.parametrize("tries", [2, 30], ids=["parked", "done"])
def test_effects_of_a_job_that_cannot_be_decoded_are_parked_and_done(tries: int) -> None:
    index = Index(failures=3)
    world = a_world(index, max_effect_tries=tries)
    job = run_job(world, 1)
    key = control_table.job_key(job.id)
    world.store.transact("break", [Update(key, set={"retries": "many"})])
    recover(world, 6)
    if tries == 2:
        assert (world.store.get(key) or {})["waiting_reason"] == Waiting.EFFECTS_PARKED
        [parked] = open_effects_of_all(world)
        assert replay_one(world, parked.effect)
        recover(world, 6)
    item = world.store.get(key) or {}
    assert (item["state"], item["effects_open"], item["effects_parked"]) == ("SUCCEEDED", 0, 0)
    assert index.documents == {"r000": (2, 2)}
