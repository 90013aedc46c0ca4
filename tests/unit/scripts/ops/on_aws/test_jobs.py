"""The check's own jobs: what is broken is a row, and nothing of them stays, whatever is broken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlane_client import ApiProblem, Client, JobView, NewJob, StillRunning
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.dead_letters import Fate
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Table
from handlers.testing.world import MemoryWorld, memory_world
from scripts.local.errors import LocalError
from scripts.ops.on_aws import jobs
from scripts.ops.on_aws.jobs import Trial
from scripts.ops.on_aws.rows import Verdict
from tests.support.jobs import TENANT, fill, new_job, now
from tests.support.operators import seen_by_operator
from tests.support.views import job_view


class Api:
    """The client's calls, on a world whose workers serve the queues or do not."""

    def __init__(self, world: MemoryWorld, *, serving: bool) -> None:
        self.world, self.serving = world, serving

    def submit(self, new: NewJob, **_: object) -> JobView:
        asked = parse(new.json_body().decode())
        made = submit(self.world, TENANT, accept(asked, self.world.operations, max_ids=1000))
        assert isinstance(made, Created)
        return self.get(made.job.id)

    def get(self, job_id: str) -> JobView:
        job = read_job(self.world, job_id)
        assert job is not None
        counts = {name: getattr(job, name) for name in ("succeeded", "failed", "skipped")}
        return job_view(job_id, state=job.state.value, lane=job.lane.value, **counts)

    def wait(self, job_id: str, **_: object) -> JobView:
        for delivery in self.world.queues[Lane.SMALL].receive(10, 0) if self.serving else ():
            decision = on_message(self.world, delivery, Worker("w"))
            apply_decision(self.world.queues[Lane.SMALL], delivery, decision)
        if not (view := self.get(job_id)).ended:
            raise StillRunning(f"job {job_id} is {view.state}")
        return view

    def cancel(self, job_id: str) -> JobView:
        control.cancel(self.world, TENANT, job_id)
        return self.get(job_id)


@pytest.fixture
def world() -> MemoryWorld:
    return memory_world()


def trial(world: MemoryWorld, *, serving: bool) -> Trial:
    settings = SimpleNamespace(limits=world.limits, timing=world.timing)
    here: Any = seen_by_operator(world, settings=settings, dead_letters=world.dead_letters)
    client: Any = Api(world, serving=serving)
    return Trial(client, here, patience=1, items=200)


@pytest.mark.parametrize(("serving", "verdict"), [(True, Verdict.HELD), (False, Verdict.BROKEN)])
def test_nothing_stays_whether_a_lane_is_served_or_not(
    world: MemoryWorld, *, serving: bool, verdict: Verdict
) -> None:
    here = trial(world, serving=serving)
    here.small()
    here.own_records()
    here.end()
    assert [(row.what, row.verdict) for row in here.rows] == [
        (jobs.SMALL, verdict),
        (jobs.CHANGE, verdict),
        (jobs.CLEAN, Verdict.HELD),
    ]
    assert not world.store.snapshot(Table.RECORDS)
    ended = [read_job(world, job_id) for job_id in here.made]
    assert {job.state for job in ended if job} == (
        {State.SUCCEEDED} if serving else {State.CANCELLED}
    )


class Failing(Api):
    """Its first cancel is refused, for a reason or because the job ends just before."""

    def __init__(self, world: MemoryWorld, *, ends: bool) -> None:
        super().__init__(world, serving=False)
        self.fails, self.ends = True, ends

    def cancel(self, job_id: str) -> JobView:
        if self.fails:
            self.fails = False
            if self.ends:
                super().cancel(job_id)
            raise ApiProblem(409, "not_possible", "no")
        return super().cancel(job_id)


@pytest.mark.parametrize("ends", [True, False])
def test_every_job_is_let_go_whatever_becomes_of_another(world: MemoryWorld, *, ends: bool) -> None:
    here = trial(world, serving=False)
    here.client = cast("Client", Failing(world, ends=ends))
    for subject in "abc":
        here._submit(subject, ids=["r"])
    here.end()
    states = [job.state for job_id in here.made if (job := read_job(world, job_id))]
    assert states == [State.CANCELLED if ends else State.QUEUED, *[State.CANCELLED] * 2]
    [row] = here.rows
    assert row.verdict is (Verdict.HELD if ends else Verdict.BROKEN)
    assert (f"fairlane jobs cancel {here.made[0]}" in row.saw) is not ends


def failed(world: MemoryWorld, subject: str) -> Job:
    job = new_job(world, fill(world, 1), subject)
    end_job(world, job, Ending(State.FAILED, EndReason.BAD_UPLOAD))
    return now(world, job)


def test_a_redrive_takes_its_own_letter_and_leaves_the_others(world: MemoryWorld) -> None:
    own, other = failed(world, "own"), failed(world, "other")
    world.dead_letters[Lane.SMALL].send([message_for(other)])
    fates = trial(world, serving=True)._fates(own)
    assert fates == [Fate.REFUSED, Fate.RETRIED]
    [left] = world.dead_letters[Lane.SMALL].snapshot()
    assert left.body == message_for(other).body
    assert left.visible_at <= world.runtime.now()
    assert (now(world, own).state, now(world, other).state) == (State.QUEUED, State.FAILED)


def test_a_letter_that_cannot_be_received_again_is_named(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would raise the lane's alarm until it expires, two weeks later."""
    own, here = failed(world, "own"), trial(world, serving=True)

    def forbidden(_: object) -> None:
        raise LocalError("not authorized to perform: sqs:receivemessage")

    monkeypatch.setattr(jobs, "letters_of", forbidden)
    with pytest.raises(LocalError):
        here._fates(own)
    here.end()
    [row] = here.rows
    assert (row.verdict, own.id in row.saw) == (Verdict.BROKEN, True)


def test_a_letter_that_was_judged_is_not_named(world: MemoryWorld) -> None:
    here = trial(world, serving=True)
    here._fates(failed(world, "own"))
    here.end()
    assert [row.verdict for row in here.rows] == [Verdict.HELD]
