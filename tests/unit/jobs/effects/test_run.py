"""Effects: outside state follows the database, whatever fails on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.effect import Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.states import State
from tests.support.jobs import TENANT, now
from tests.support.sinks import Index, a_world, recover, run_job

if TYPE_CHECKING:
    from handlers.jobs.words.effect import Batch


def test_every_chunk_is_told_once_and_the_job_succeeds() -> None:
    index = Index()
    world = a_world(index)
    job = run_job(world, 12)
    assert (job.state, job.effects_open, job.effects_done) == (State.SUCCEEDED, 0, 3)
    assert index.keys == [f"{job.id}:{position}" for position in (0, 5, 10)]
    assert index.documents == {f"r{n:03}": (2, 2) for n in range(12)}
    assert not world.store.query_partition(f"JOB#{job.id}", sk_prefix="EFFECT#").found


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


def test_a_removal_that_meets_a_record_made_again_is_followed_by_the_new_record() -> None:
    """Its document is of a lower version than the removal, so the removal takes it away."""
    index = Index(failures=1)
    world = a_world(index)
    run_job(world, 1)
    record = world.records.read(TENANT, ["r000"])["r000"]
    world.store.transact("outside", [world.records.remove(record, "other")])
    sent: list[object] = []

    class MadeAgainMeanwhile:
        def deliver(self, batch: Batch) -> Delivered:
            if not sent:
                world.records.load(TENANT, {"r000": {"n": 5, "version": 1}})
            sent.extend(each.record and each.record.fields["n"] for each in batch.records)
            return Delivered()

    recover(replace(world, sinks={"index": MadeAgainMeanwhile()}), 4)
    assert sent == [None, 5]


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
