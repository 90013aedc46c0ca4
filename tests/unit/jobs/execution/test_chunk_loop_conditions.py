"""The chunk loop's decisions one by one: pace, rate limits, what a refusal means."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.execution.chunk_loop import MAX_REPLANS, ChunkLoop
from handlers.jobs.execution.planning import plan, work_of
from handlers.jobs.execution.rate_limiter import GaveUpWaiting
from handlers.jobs.execution.stopping import StopReason
from handlers.jobs.selection.id_sources import source_of
from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import Contended, Rejected
from handlers.jobs.transitions.chunk_commit import record_role
from handlers.jobs.transitions.conditions import EFFECT, JOB
from handlers.jobs.words.errors import OwnershipLost, Reason, Transient, Why
from handlers.jobs.words.job import Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Fail
from handlers.jobs.words.pace import PacedBy
from handlers.jobs.words.writes import Update
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, prices
from tests.support.process import nth, process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld

CHANGED: Final = Reason(Why.CONDITION)


@dataclass
class Limiter:
    """A rate limiter that holds chunks up, or gives up waiting."""

    holding: bool = False
    gives_up: bool = False
    waited_ms: int = 0
    answers: list[bool] = field(default_factory=list)
    """Whether the attempt has to stop, as the loop answered."""

    def look(self, _world: object, _job: object) -> None: ...

    def chunk_size(self, size: int) -> int:
        return size

    def wait(self, _world: object, _plans: Iterable[object], stopping: Callable[[], bool]) -> None:
        if self.gives_up:
            self.answers.append(stopping())
        if any(self.answers):
            raise GaveUpWaiting


@dataclass
class Governor:
    percent: int
    why: PacedBy = PacedBy.THROTTLING

    def chunk_size(self, size: int) -> int:
        return size

    def after_chunk(self, *_: object) -> None: ...


def running(count: int = 3, chunk: int = 10) -> tuple[MemoryWorld, Job]:
    world = memory_world(limits=Limits(chunk_size=chunk))
    return world, begin(world, new_job(world, fill(world, count)))


def loop(
    world: MemoryWorld, job: Job, stops: Callable[[Job], StopReason | None] | None = None, **of: Any
) -> ChunkLoop:
    never: Callable[[Job], StopReason | None] = lambda _job: None  # noqa: E731
    return ChunkLoop(world, work_of(world, job), source_of(world, job), stops or never, **of)


def change(world: MemoryWorld, job: Job, **attributes: int | str) -> None:
    key = control_table.job_key(job.id)
    world.store.transact("change", [Update(key, set=attributes)])


# --- pace and limits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limiter", "governor", "pace", "by"),
    [
        (None, None, None, None),
        (Limiter(), None, None, None),
        (Limiter(holding=True), None, None, PacedBy.RATE_LIMIT),
        (Limiter(holding=True), Governor(50), None, PacedBy.RATE_LIMIT),
        (Limiter(), Governor(50), 50, PacedBy.THROTTLING),
        (None, Governor(99), 99, PacedBy.THROTTLING),
        (None, Governor(100), None, None),
    ],
)
def test_a_chunk_says_what_slowed_it_down(
    limiter: Limiter | None, governor: Governor | None, pace: int | None, by: PacedBy | None
) -> None:
    world, job = running()
    told = loop(world, job, limiter=limiter, governor=governor)._pace()
    assert told == {"pace": pace, "paced_by": by}


@pytest.mark.parametrize(
    ("limiter", "reason", "told"),
    [
        (Limiter(holding=True), None, Waiting.RATE_LIMIT),
        (Limiter(holding=True), Waiting.RATE_LIMIT, "as it is"),
        (Limiter(holding=True), Waiting.WORKER_LOST, Waiting.RATE_LIMIT),
        (Limiter(), Waiting.RATE_LIMIT, None),
        (None, Waiting.RATE_LIMIT, None),
        (Limiter(), None, "as it is"),
        (Limiter(), Waiting.WORKER_LOST, "as it is"),
        (None, None, "as it is"),
    ],
)
def test_a_job_says_since_when_limits_hold_it_up(
    limiter: Limiter | None, reason: Waiting | None, told: Waiting | str | None
) -> None:
    world, job = running()
    job = job.model_copy(update={"waiting_reason": reason, "waiting_since": 5})
    fields = loop(world, job, limiter=limiter)._waits_for_rates(job)
    if told == "as it is":
        assert fields == {}
    else:
        since = None if told is None else world.runtime.now()
        assert fields == {"waiting_reason": told, "waiting_since": since}


def test_an_attempt_that_has_to_stop_gives_up_waiting_for_its_rate() -> None:
    world, job = running()
    asked: list[StopReason | None] = [None, StopReason.SHUTDOWN]
    made = loop(world, job, lambda _: asked.pop(0), limiter=Limiter(gives_up=True))
    end = made.walk(job)
    assert (end.stop, end.job.position) == (StopReason.SHUTDOWN, 0)
    limiter = Limiter(gives_up=True)
    goes_on = loop(world, job, limiter=limiter).walk(job)
    assert (goes_on.stop, goes_on.job.position) == (None, 3)
    assert limiter.answers == [False]


# --- a job that moved -------------------------------------------------------------------------


def test_a_chunk_that_took_effect_after_all_is_not_committed_again() -> None:
    """The walk goes on behind it, wherever that is."""
    below, job = running(count=20)
    world, store = process(below)
    store.before = nth(1, "commit_chunk", lambda: change(below, job, position=4, cursor=4))
    end = loop(world, job).walk(job)
    assert (end.stop, end.job.position) == (None, 20)
    ids = [f"r{n:04}" for n in range(20)]
    assert (prices(world, ids[:4]), prices(world, ids[4:])) == ({10}, {11})


def unknown_total(**change_: int | str) -> tuple[MemoryWorld, Job, ChunkLoop]:
    world, job = running()
    world.store.transact("open", [Update(control_table.job_key(job.id), remove=("total",))])
    job = now(world, job)
    if change_:
        change(world, job, **change_)
    return world, job, loop(world, job)


def test_the_end_of_a_walk_meets_a_pause_and_a_successor() -> None:
    world, job, made = unknown_total(state="PAUSING")
    assert made._ended(job).stop is StopReason.PAUSED
    world, job, made = unknown_total(state="PAUSING")
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("taken", [Update(key, set={"job_id": "other"})])
    with pytest.raises(OwnershipLost):
        made._ended(job)
    world, job, made = unknown_total(position=2)
    with pytest.raises(OwnershipLost):
        made._ended(job)


# --- records that changed ---------------------------------------------------------------------


def replanning(count: int = 4) -> tuple[MemoryWorld, Job, ChunkLoop, tuple[Any, ...]]:
    world, job = running(count)
    made = loop(world, job)
    entries = made.source.after(0, count).entries
    plans = plan(world, job, made.work, [entry.id for entry in entries])
    return world, job, made, (entries, plans, Counter())


def test_a_refusal_that_names_no_record_is_no_reason_to_plan_again() -> None:
    _, job, made, rest = replanning()
    with pytest.raises(Transient):
        made._replan(job, Rejected("commit_chunk", {EFFECT: CHANGED}), *rest)
    again = made._replan(job, Rejected("commit_chunk", {record_role(1): CHANGED}), *rest)
    assert again.keys() == {"r0001"}


@pytest.mark.parametrize(
    ("roles", "why", "raises"),
    [
        ([JOB], Why.CONFLICT, True),
        ([record_role(0)], Why.CONFLICT, False),
        ([record_role(n) for n in range(4)], Why.CONFLICT, False),
        ([record_role(n) for n in range(2)], Why.THROTTLED, False),
        ([record_role(n) for n in range(3)], Why.THROTTLED, True),
    ],
)
def test_contention_of_few_records_is_theirs_and_of_most_the_table_s(
    roles: list[str], why: Why, *, raises: bool
) -> None:
    _, job, made, rest = replanning()
    contended = Contended("commit_chunk", dict.fromkeys(roles, Reason(why)))
    if raises:
        with pytest.raises(Contended):
            made._replan_hot(job, contended, *rest)
    else:
        assert len(made._replan_hot(job, contended, *rest)) == len(roles)


def test_a_record_that_was_planned_too_often_fails_without_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, job, made, _ = replanning()
    read: list[list[str]] = []
    below = world.records.read

    def watched(tenant: str, ids: list[str]) -> Any:
        read.append(list(ids))
        return below(tenant, ids)

    monkeypatch.setattr(world.records, "read", watched)
    times = Counter({"r0000": MAX_REPLANS, "r0001": MAX_REPLANS - 1})
    plans = made._plan_again(job, ["r0000", "r0001"], times, "too often")
    assert isinstance(plans["r0000"].outcome, Fail)
    assert not isinstance(plans["r0001"].outcome, Fail)
    made._plan_again(job, ["r0001"], times, "too often")
    assert read == [["r0001"]]


@pytest.mark.parametrize(
    ("count", "bad", "told"), [(4, [1], True), (4, [0, 1, 2, 3], False), (1, [0], True)]
)
def test_the_store_tells_which_records_are_bad_unless_it_refuses_all(
    count: int, bad: list[int], *, told: bool
) -> None:
    _, _, made, (entries, plans, _) = replanning(count)
    invalid = {record_role(n): Reason(Why.INVALID, message="too large") for n in bad}
    found = made._unwritable(Rejected("commit_chunk", invalid), entries, plans)
    assert (found is not None) is told
    if found is not None:
        assert [each.id for each in found] == [f"r{n:04}" for n in bad]
