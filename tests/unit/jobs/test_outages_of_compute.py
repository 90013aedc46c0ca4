"""What runs Fairlane's code is down: how long afterwards work goes on, and what makes it go on. The
bounds are those of docs/protocol.md."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import pytest

from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.lifecycle import recovery
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.waiting import wait_now
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, MINUTE, SECOND, ms
from handlers.testing.record_store import MemoryRecordStore
from infra.settings import PRODUCTION_TIMING
from tests.support.compute import RECOVERY, ComputeOutage, Killed, work_through
from tests.support.jobs import TENANT, begin, fill, new_job, now, prices
from tests.support.outage_bounds import SLACK, Noting, Slow, bounds, seconds
from tests.support.outages import deployed
from tests.support.sinks import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld

    Guard = Callable[[], AbstractContextManager[object]]

BEGINS: Final = 31 * SECOND
BRIEF: Final = 10 * SECOND
LONG: Final = 25 * MINUTE
VERY_LONG: Final = (170 * MINUTE, 10 * HOUR)
"""So long that messages received again and again are dead letters, and that recovery has sent fresh
ones several times."""
WORKERS: Final = 6
WAITING: Final = 3
FEW: Final = 5
MANY: Final = 60
FUNCTIONS: Final = "functions of the small lane"
TASKS: Final = "tasks of the bulk worker (ECS)"
LAMBDA: Final = "Lambda as a whole"
SCHEDULE: Final = "schedule of recovery, or its function"
API: Final = "API Gateway, or the functions behind it"
DOWN: Final[Mapping[str, frozenset[str]]] = {
    FUNCTIONS: frozenset({Lane.SMALL}),
    TASKS: frozenset({Lane.BULK}),
    LAMBDA: frozenset({Lane.SMALL, RECOVERY}),
}
"""By row of the page, what does not run."""


def bound(row: str, lane: Lane) -> int:
    """ms, with the time that a chunk and a poll take."""
    return ms(seconds(bounds()[row], lane)) + SLACK


def shown(world: MemoryWorld, job: Job) -> tuple[State, Waiting | None]:
    """What a client sees."""
    wait = wait_now(world, now(world, job))
    return now(world, job).state, None if wait is None else wait.reason


class Scene:
    """A job at work when the outage begins, some that wait for a worker then, one made in it where
    the API goes on, and one made afterwards."""

    def __init__(
        self,
        row: str,
        lasts: int,
        *,
        deaf: bool = False,
        jobs_of: Lane | None = None,
        **times: float,
    ) -> None:
        """jobs_of: the lane of the jobs, if not the one that is down. times: settings of
        ``timing``, if not a deployment's."""
        self.row = row
        self.lane = jobs_of or (Lane.BULK if row == TASKS else Lane.SMALL)
        plain = deployed()
        self.store = Noting(plain.store, plain.runtime)
        inner: Any = self.store
        self.ids = fill(plain, MANY)
        records: Any = Slow(MemoryRecordStore(inner), plain.runtime)
        small = 1 if self.lane is Lane.BULK else 100
        limits = Limits(chunk_size=FEW, small_max_items=small, tenant_slots_bulk=WORKERS)
        timing = plain.timing.model_copy(update=times)
        self.world: MemoryWorld = replace(
            plain, store=inner, records=records, limits=limits, timing=timing
        )
        begins = plain.runtime.now() + BEGINS
        self.outage = ComputeOutage(DOWN[row], begins, begins + lasts, deaf)
        self.jobs = [new_job(self.world, self.ids, "running")]
        self.shown: dict[str, tuple[State, Waiting | None]] = {}
        """By subject, what a client sees just before the end."""

    def client(self) -> None:
        runtime, outage = self.world.runtime, self.outage
        runtime.sleep(outage.begins - 1 - runtime.now())
        for number in range(WAITING):
            self.ask(f"waiting{number}")
        runtime.sleep(2)
        if self.row != LAMBDA:
            self.ask("during")
        runtime.sleep(outage.ends - 1 - runtime.now())
        for job in self.jobs:
            self.shown[job.subject] = shown(self.world, job)
        runtime.sleep(1)
        self.ask("after")

    def ask(self, subject: str) -> None:
        self.jobs.append(new_job(self.world, self.ids[:FEW], subject))

    def run(self, until: Callable[[], bool] | None = None) -> Scene:
        """until: by default, every job has ended."""
        self.world.runtime.spawn("client", self.client)
        work_through(self.world, self.outage, until or self.all_ended, workers=WORKERS)
        return self

    def run_past(self, bound: int) -> Scene:
        return self.run(lambda: self.world.runtime.now() > self.outage.ends + bound)

    def all_ended(self) -> bool:
        made = self.jobs[-1].subject == "after"
        return made and all(now(self.world, job).state.terminal for job in self.jobs)

    def late(self) -> dict[str, int]:
        """By subject, how long after the outage (ms) the job went on, if it did."""
        ends = self.outage.ends
        commits = {
            job.subject: [at for at in self.store.commits.get(job.id, ()) if at >= ends]
            for job in self.jobs
        }
        return {subject: min(ats) - ends for subject, ats in commits.items() if ats}

    def still_waiting(self, bound: int) -> set[str]:
        late = self.late()
        return {job.subject for job in self.jobs if late.get(job.subject, bound + 1) > bound}


TIMES: Final = [
    pytest.param(row, lasts, deaf, id=f"{row}: {lasts // SECOND} s{', deaf' * deaf}")
    for row in DOWN
    for deaf in (False, True)
    for lasts in (BRIEF, LONG)
    if not (deaf and row == TASKS)  # a worker receives its messages itself
]


@pytest.mark.parametrize(("row", "lasts", "deaf"), TIMES)
def test_work_goes_on_within_the_bound_of_the_page(row: str, lasts: int, *, deaf: bool) -> None:
    scene = Scene(row, lasts, deaf=deaf).run()
    assert not scene.still_waiting(bound(row, scene.lane)), scene.late()
    world = scene.world
    assert {now(world, job).state for job in scene.jobs} == {State.SUCCEEDED}
    assert not any(queue.snapshot() for queue in world.dead_letters.values())
    assert prices(world, scene.ids[:FEW]) == {10 + len(scene.jobs)}
    assert prices(world, scene.ids[FEW:]) == {11}


@pytest.mark.parametrize("lasts", VERY_LONG)
@pytest.mark.parametrize("row", [FUNCTIONS, LAMBDA])
def test_no_job_waits_for_a_message_that_is_a_dead_letter(row: str, lasts: int) -> None:
    """Recovery sends a fresh message before the last one is given up, or at its first run."""
    scene = Scene(row, lasts, deaf=True).run()
    assert scene.world.dead_letters[Lane.SMALL].snapshot()
    assert not scene.still_waiting(bound(row, scene.lane)), scene.late()
    assert {now(scene.world, job).state for job in scene.jobs} == {State.SUCCEEDED}


@pytest.mark.parametrize("row", [FUNCTIONS, LAMBDA])
def test_a_lost_after_longer_than_messages_last_comes_on_top(row: str) -> None:
    """As the page says: all messages are dead letters, and recovery has missed none of them yet,
    but for that of the job whose lease has expired."""
    unheard = PRODUCTION_TIMING.small.unheard_for
    over = 20 * MINUTE // SECOND
    scene = Scene(row, ms(unheard) + MINUTE, deaf=True, lost_after=unheard + over).run()
    usual = bound(row, scene.lane)
    assert scene.still_waiting(usual) == {job.subject for job in scene.jobs} - {"after", "running"}
    assert not scene.still_waiting(usual + ms(over)), scene.late()


@pytest.mark.parametrize("row", DOWN)
def test_without_the_end_of_its_hiding_a_killed_job_waits_longer(row: str) -> None:
    """The control: a beat hides the message for far longer than the lane's visibility."""

    def hide(self: Heartbeat, receipt: str) -> None:
        self._world.queues[self._job.lane].set_visibility(receipt, 4 * HOUR // SECOND)

    with patch.object(Heartbeat, "_extend", hide):
        scene = Scene(row, BRIEF)
        scene.run_past(bound(row, scene.lane))
    assert scene.still_waiting(bound(row, scene.lane)) == {"running"}


@pytest.mark.parametrize("row", [FUNCTIONS, LAMBDA])
def test_without_recovery_s_messages_jobs_wait_longer(row: str) -> None:
    """The control: the messages of all jobs made before the end are dead letters."""
    with patch.object(Recovery, "_dispatch_again", lambda *_: False):
        scene = Scene(row, VERY_LONG[0], deaf=True)
        scene.run_past(bound(row, scene.lane))
    before = {job.subject for job in scene.jobs} - {"after"}
    assert scene.still_waiting(bound(row, scene.lane)) >= before - {"running"}


@pytest.mark.parametrize("row", DOWN)
def test_meanwhile_a_client_sees_what_the_page_says(row: str) -> None:
    shown = Scene(row, LONG).run().shown
    assert shown.pop("running") == (State.RUNNING, Waiting.WORKER_LOST)
    assert set(shown.values()) == {(State.QUEUED, Waiting.LANE_BUSY)}


@pytest.mark.parametrize(("row", "lane"), [(FUNCTIONS, Lane.BULK), (TASKS, Lane.SMALL)])
def test_the_other_lane_goes_on(row: str, lane: Lane) -> None:
    scene = Scene(row, LONG, jobs_of=lane).run()
    others = {what for subject, what in scene.shown.items() if subject != "running"}
    assert others == {(State.SUCCEEDED, None)}


# --- the schedule of recovery ---------------------------------------------------------------------


class Left:
    """A job of each kind that only recovery can get on with, left so while its schedule is down."""

    def __init__(self, lasts: int = LONG) -> None:
        self.index = Index()
        plain = deployed(self.index)
        self.world = replace(plain, limits=Limits(small_max_items=FEW, tenant_slots_small=10))
        self.ids = fill(plain, FEW + 1)
        plain.records.load(TENANT, {i: {"n": 1, "price": 10, "version": 1} for i in self.ids})
        begins = plain.runtime.now()
        self.outage = ComputeOutage(frozenset({RECOVERY}), begins, begins + lasts)
        self.jobs: dict[str, Job] = {}
        self.shown: dict[str, tuple[State, Waiting | None]] = {}
        self.ended: dict[str, int] = {}

    def leave_all(self) -> None:
        world = self.world
        self.leave_unsent("unsent")
        self.jobs["lost"] = self.ask(world, "lost")
        self.lose_message()
        self.jobs["killed"] = self.ask(world, "killed")
        [delivery] = world.queues[Lane.SMALL].receive(1, 0)
        begin(world, self.jobs["killed"])
        world.queues[Lane.SMALL].delete(delivery.receipt)
        # Of the other lane, where no job ends that would admit it.
        set_slots(world, TENANT, Lane.BULK, 0)
        self.jobs["held"] = self.ask(world, "held", FEW + 1)
        set_slots(world, TENANT, Lane.BULK, None)  # and the process ends before it admits
        self.index.failures = 1
        self.jobs["settling"] = self.ask(world, "settling")

    def leave_unsent(self, subject: str) -> None:
        """The process ends between the commit and the message."""
        queues: Any = {lane: Crashing() for lane in Lane}
        seen = replace(self.world, queues=queues)
        with pytest.raises(Killed):
            self.ask(seen, subject)
        self.jobs[subject] = holder(self.world, subject)

    def ask(self, world: MemoryWorld, subject: str, count: int = FEW) -> Job:
        return new_job(world, self.ids[:count], subject, operation="bump", params={})

    def lose_message(self) -> None:
        [delivery] = self.world.queues[Lane.SMALL].receive(1, 0)
        self.world.queues[Lane.SMALL].delete(delivery.receipt)

    def run_past(self, bound: int) -> Left:
        runtime, ends = self.world.runtime, self.outage.ends

        def look() -> None:
            runtime.sleep(ends - 1 - runtime.now())
            for subject, job in self.jobs.items():
                self.shown[subject] = shown(self.world, job)

        runtime.spawn("client", look)
        work_through(self.world, self.outage, lambda: runtime.now() > ends + bound, workers=WORKERS)
        return self

    def unfinished(self) -> set[str]:
        return {s for s, job in self.jobs.items() if not now(self.world, job).state.terminal}


class Crashing:
    """A queue, as a process sees it that ends when it would send."""

    def send(self, _messages: object) -> frozenset[int]:
        raise Killed


def holder(world: MemoryWorld, subject: str) -> Job:
    lease = world.store.get(control_table.lease_key(TENANT, subject)) or {}
    job = read_job(world, str(lease["job_id"]))
    assert job is not None
    return job


def test_recovery_does_at_its_first_run_what_was_left_to_it() -> None:
    left = Left()
    left.leave_all()
    left.run_past(bound(SCHEDULE, Lane.SMALL))
    assert not left.unfinished()
    assert left.shown == {
        "unsent": (State.QUEUED, Waiting.LANE_BUSY),
        "lost": (State.QUEUED, Waiting.LANE_BUSY),
        "killed": (State.RUNNING, Waiting.WORKER_LOST),
        "held": (State.QUEUED, Waiting.TENANT_LIMIT),
        "settling": (State.SETTLING, Waiting.EFFECTS_OPEN),
    }


STEPS: Final[Mapping[str, tuple[Guard, set[str]]]] = {
    "dispatches": (lambda: patch.object(recovery, "recover_dispatch", nothing), {"unsent"}),
    "leases": (lambda: patch.object(Recovery, "_lease", nothing), {"lost", "killed"}),
    # Found by the count of held jobs, and by the lease that each of them has.
    "held jobs": (lambda: patch.multiple(Recovery, _admit=nothing, _held=nothing), {"held"}),
    "effects": (lambda: patch.object(Recovery, "_effect", nothing), {"settling"}),
}
"""Steps of recovery, and the jobs that wait without them."""


def nothing(*_: object) -> bool:
    return False


@pytest.mark.parametrize("step", STEPS)
def test_without_a_step_of_recovery_its_jobs_wait_longer(step: str) -> None:
    without, waiting = STEPS[step]
    with without():
        left = Left()
        left.leave_all()
        left.run_past(bound(SCHEDULE, Lane.SMALL))
    assert left.unfinished() == waiting


def test_a_backlog_takes_a_run_for_each_slice_of_it() -> None:
    """As the page says: ``recovery_slice`` rows of a kind in each shard in one run."""
    left = Left()
    limits = left.world.limits.model_copy(update={"recovery_slice": 2})
    left.world = replace(left.world, due_shards=1, limits=limits)
    for number in range(9):
        left.leave_unsent(f"unsent{number}")
    left.run_past(bound(SCHEDULE, Lane.SMALL))
    assert len(left.unfinished()) == 9 - 2 * 2  # at the end itself, and a minute later
    work_through(left.world, left.outage, lambda: not left.unfinished(), workers=WORKERS)
    late = left.world.runtime.now() - left.outage.ends
    assert late <= 5 * ms(seconds("recovery", Lane.SMALL)) + SLACK


# --- the API --------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [nullcontext, STEPS["dispatches"][0]], ids=["", "control"])
def test_a_request_that_is_cut_after_its_commit_makes_a_job_that_runs_soon(guard: Guard) -> None:
    with guard():
        left = Left(lasts=0)
        left.leave_unsent("unsent")
        left.run_past(bound(API, Lane.SMALL))
    assert left.unfinished() == (set() if guard is nullcontext else {"unsent"})


def test_jobs_go_on_while_no_request_can_be_made() -> None:
    """Nothing that works on jobs asks the API."""
    left = Left()
    left.jobs["made before"] = left.ask(left.world, "made before")
    left.run_past(0)
    assert left.shown["made before"] == (State.SUCCEEDED, None)
