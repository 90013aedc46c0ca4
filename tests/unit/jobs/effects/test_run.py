"""Effects: outside state follows the database, whatever fails on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.effects.rows import replay_effect
from handlers.jobs.effects.run import effect_of_item
from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.effect import Delivered
from handlers.jobs.words.errors import Refused, Transient
from handlers.jobs.words.job import EndReason, Job, Lane, Waiting
from handlers.jobs.words.operation import Outcome
from handlers.jobs.words.states import State
from handlers.testing.world import SHORT
from tests.support.jobs import TENANT, now
from tests.support.sinks import OPERATION, Index, Nothing, a_world, bump, recover, run_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.operation import Fields
    from handlers.jobs.words.writes import Write


def test_every_chunk_is_told_once_and_the_job_succeeds() -> None:
    index = Index()
    world = a_world(index)
    job = run_job(world, 12)
    assert (job.state, job.effects_open, job.effects_done) == (State.SUCCEEDED, 0, 3)
    assert index.keys == [f"{job.id}:{position}" for position in (0, 5, 10)]
    assert index.documents == {f"r{n:03}": (2, 2) for n in range(12)}
    assert not world.store.query_partition(f"JOB#{job.id}", sk_prefix="EFFECT#").found


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


@pytest.mark.parametrize("removed", [True, False])
def test_a_late_replay_writes_todays_truth(*, removed: bool) -> None:
    index = Index(failures=1)
    world = a_world(index)
    job = run_job(world, 1)
    assert job.state is State.SETTLING
    record = world.records.read(TENANT, ["r000"])["r000"]
    write = (
        world.records.remove(record, "other")
        if removed
        else world.records.change(record, {"n": 77}, "other")
    )
    world.store.transact("outside", [write])
    recover(world, 3)
    assert index.documents == {"r000": (2, None) if removed else (3, 77)}


def test_done_effects_of_a_long_job_are_noted_together() -> None:
    """And what could not be noted with the others is noted alone, or done again by recovery."""
    index = Index()
    world = a_world(index)
    noted: list[int] = []
    transact = world.store.transact

    def counted(action: str, writes: Sequence[Write]) -> None:
        if action == "effects_done":
            noted.append(len(writes) - 1)
            if len(noted) == 1:
                raise Refused([None] * len(writes))
        transact(action, writes)

    world.store.transact = counted  # type: ignore[method-assign]  # a store that refuses once
    job = run_job(world, 100)
    assert (job.state, job.effects_open, job.effects_done) == (State.SUCCEEDED, 0, 20)
    assert noted == [8, 8, 4]
    assert len(index.keys) == 20


def test_what_is_done_is_noted_before_recovery_would_do_it_again() -> None:
    """However slow the chunks are."""
    index = Index()
    world = a_world(index)

    def apply(fields: Fields, _: Nothing) -> Outcome:
        world.runtime.sleep(4000)
        Recovery(world).run()
        return bump(fields, Nothing())

    operations = {"bump": replace(OPERATION, apply=apply)}
    lively = SHORT.model_copy(update={"small": SHORT.small.model_copy(update={"visibility": 600})})
    world = replace(world, operations=operations, timing=lively)
    job = run_job(world, 50)
    assert (job.state, job.effects_done) == (State.SUCCEEDED, 10)
    assert index.keys == [f"{job.id}:{position}" for position in range(0, 50, 5)]


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


def test_a_job_of_before_a_sink_was_taken_away_still_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world(Index(failures=10**6))
    job = run_job(world, 4)
    assert job.state is State.SETTLING
    without = replace(world, sinks={})

    def forbidden(*_: object) -> None:
        raise PermissionError("dynamodb:BatchGetItem")

    # Recovery of a deployment without sinks has no right to read records.
    monkeypatch.setattr(world.records, "read", forbidden)
    recover(without, 2)
    ended = now(world, job)
    assert (ended.state, ended.effects_open) == (State.SUCCEEDED, 0)


def test_a_sink_that_hangs_holds_up_no_lost_job() -> None:
    world = a_world(Index(failures=10**6))
    settling = run_job(world, 4)
    body = json.dumps({"operation": "bump", "subject": "lost", "ids": ["r000"]})
    lost = submit(world, TENANT, accept(parse(body), world.operations, max_ids=10))
    assert isinstance(lost, Created)
    world.runtime.sleep(61_000)
    killed_at = world.runtime.now() + 45_000

    class Hanging:
        def deliver(self, _: Batch) -> Delivered:
            world.runtime.sleep(50_000)
            raise Transient("time-out")

    hanging = replace(world, sinks={"index": Hanging()})
    Recovery(hanging, lambda: world.runtime.now() > killed_at).run()
    assert now(world, settling).effects_open == 1
    assert now(world, lost.job).dispatches == 2


def test_without_a_sink_no_row_is_written() -> None:
    world = replace(a_world(Index()), sinks={})
    job = run_job(world, 12)
    assert (job.state, job.effects_done) == (State.SUCCEEDED, 0)
    assert "effects_done" not in world.telemetry.actions()
    assert not [key for key in world.store.snapshot() if key.sk.startswith("EFFECT#")]
