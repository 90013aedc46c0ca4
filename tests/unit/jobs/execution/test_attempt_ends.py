"""When an attempt stops between two chunks, and what it writes at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.effects.runner import EffectRunner
from handlers.jobs.execution import id_list
from handlers.jobs.execution.attempt import LOST, _Attempt
from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.execution.stopping import LoopEnd, StopReason, Worker
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Crashed, Denied, JobFailed, Transient
from handlers.jobs.words.job import EndReason, Job, Lane, Traversal
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import VISIBILITY_CAP, ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, receive
from tests.support.process import nth, process

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.ports import Delivery

RESERVE: Final = ms(memory_world().timing.small_reserve)
HIDDEN: Final = ms(memory_world().timing.small.visibility)


@dataclass
class Heart:
    """The heartbeat, as far as an attempt asks it."""

    lost: bool = False
    receipt: str = "r"

    def moved(self) -> None: ...


@dataclass
class Turn:
    """A slice that is over, or not."""

    is_over: bool = False

    def over(self, _job: Job) -> bool:
        return self.is_over


def running() -> tuple[MemoryWorld, Job, Delivery]:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    return world, job, receive(world, Lane.SMALL)


def attempt(
    world: MemoryWorld,
    delivery: Delivery,
    *,
    heart: Heart | None = None,
    turn: Turn | None = None,
    **worker: Any,
) -> _Attempt:
    runner = EffectRunner(world, Lane.SMALL)
    beats: Any = heart or Heart()
    takes_turns: Any = turn or Turn()
    return _Attempt(world, delivery, Worker("w1", **worker), beats, runner, takes_turns, start=1)


def change(world: MemoryWorld, job: Job, **attributes: int | str) -> None:
    key = control_table.job_key(job.id)
    world.store.transact("change", [Update(key, set=attributes)])


# --- between two chunks -----------------------------------------------------------------------


def test_a_lost_lease_and_a_stop_of_the_process_stop_the_attempt() -> None:
    world, job, delivery = running()
    assert attempt(world, delivery)._should_stop(job) is None
    stops: dict[str, Any] = {"heart": Heart(lost=True), "stopping": lambda: True}
    assert attempt(world, delivery, **stops)._should_stop(job) is StopReason.LOST
    del stops["heart"]
    assert attempt(world, delivery, **stops)._should_stop(job) is StopReason.SHUTDOWN


@pytest.mark.parametrize(("left", "stop"), [(RESERVE, None), (RESERVE - 1, StopReason.OUT_OF_TIME)])
def test_an_attempt_keeps_its_reserve(left: int, stop: StopReason | None) -> None:
    world, job, delivery = running()
    deadline = world.runtime.now() + left
    assert attempt(world, delivery, deadline=deadline)._should_stop(job) is stop


@pytest.mark.parametrize(
    ("left", "stop"), [(2 * HIDDEN, None), (2 * HIDDEN - 1, StopReason.HAND_OVER)]
)
def test_a_message_is_handed_over_while_it_can_be_hidden_twice(
    left: int, stop: StopReason | None
) -> None:
    world, job, delivery = running()
    first = world.runtime.now() - VISIBILITY_CAP + left
    old = replace(delivery, first_received_at=first)
    assert attempt(world, old)._should_stop(job) is stop


@pytest.mark.parametrize(
    ("position", "over", "stop"),
    [(2, True, StopReason.SLICE), (1, True, None), (2, False, None), (1, False, None)],
)
def test_an_attempt_gives_way_after_its_first_chunk(
    position: int,
    over: bool,  # noqa: FBT001  a parameter of the test
    stop: StopReason | None,
) -> None:
    world, job, delivery = running()
    made = attempt(world, delivery, turn=Turn(over))
    assert made._should_stop_or_give_way(job.model_copy(update={"position": position})) is stop


def test_a_stop_while_the_list_is_written_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    world, job, delivery = running()
    unprepared = job.model_copy(update={"traversal": Traversal.SNAPSHOT, "ids": None})
    stopped = LoopEnd(unprepared, StopReason.SHUTDOWN)
    monkeypatch.setattr(id_list, "write_id_list", lambda *_: stopped)
    assert attempt(world, delivery).work(unprepared) is stopped


def test_a_small_job_has_no_governor_and_no_limiter() -> None:
    world, job, delivery = running()
    made = attempt(world, delivery, governor=object(), limiter=object())
    end = made.work(job)
    assert isinstance(end, LoopEnd)
    assert (end.stop, end.job.position) == (None, 3)


@pytest.mark.parametrize(("before_last", "near"), [(2, False), (1, True), (0, True)])
def test_the_last_receive_but_one_is_near_the_last(before_last: int, *, near: bool) -> None:
    world, job, delivery = running()
    count = world.timing.small.max_receive_count - before_last
    made = attempt(world, replace(delivery, receive_count=count))
    assert made._near_last_receive(job) is near


# --- the end ----------------------------------------------------------------------------------


def test_an_attempt_that_lost_its_lease_writes_nothing() -> None:
    world, job, delivery = running()
    before = world.store.snapshot()
    assert attempt(world, delivery).conclude(job, LoopEnd(job, StopReason.LOST)) == LOST
    assert world.store.snapshot() == before


def test_another_holder_of_the_subject_ends_the_attempt_at_once() -> None:
    world, job, delivery = running()
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("taken", [Update(key, set={"job_id": "other"})])
    before = world.store.snapshot()
    assert attempt(world, delivery).conclude(job, LoopEnd(job, None)) == LOST
    assert world.store.snapshot() == before


def moved(**attributes: int | str) -> tuple[MemoryWorld, Job, _Attempt]:
    """A job that is changed just before the attempt first writes its end."""
    below, job, delivery = running()
    world, store = process(below)
    act: Callable[[], object] = lambda: change(below, job, **attributes)  # noqa: E731
    store.before = nth(1, "end_succeeded", act)
    return world, job, attempt(world, delivery)


def test_an_attempt_whose_job_moved_to_another_worker_meanwhile_is_lost() -> None:
    world, job, made = moved(dispatches=7, worker="other")
    assert made.conclude(job, LoopEnd(job, None)) == LOST
    assert now(world, job).state is State.RUNNING


def test_an_attempt_whose_job_only_moved_is_concluded_as_it_is_then() -> None:
    for state, ended in (("CANCELLING", State.CANCELLED), ("PAUSING", State.PAUSED)):
        world, job, made = moved(state=state)
        assert isinstance(made.conclude(job, LoopEnd(job, None)), DeleteMessage)
        assert now(world, job).state is ended


@pytest.mark.parametrize(
    ("attributes", "mine"),
    [({"position": 1}, True), ({"fence": 1}, False), ({"worker": "other"}, False)],
)
def test_a_job_is_the_attempt_s_by_its_fence_and_its_worker(
    attributes: dict[str, int | str], *, mine: bool
) -> None:
    world, job, delivery = running()
    change(world, job, **attributes)
    assert (attempt(world, delivery)._read_if_mine(job) is not None) is mine


@pytest.mark.parametrize(
    ("state", "result", "ended"),
    [
        (State.RUNNING, None, State.SUCCEEDED),
        (State.CANCELLING, None, State.CANCELLED),
        (State.PAUSING, None, State.PAUSED),
        (State.RUNNING, JobFailed(EndReason.BAD_QUERY, "why"), State.FAILED),
        (State.CANCELLING, JobFailed(EndReason.BAD_QUERY, "why"), State.CANCELLED),
        (State.RUNNING, Transient("down"), State.QUEUED),
        (State.PAUSING, Transient("down"), State.PAUSED),
    ],
)
def test_what_a_client_asked_for_goes_before_what_became_of_the_attempt(
    state: State, result: JobFailed | Transient | None, ended: State
) -> None:
    world, job, delivery = running()
    change(world, job, state=state.value)
    job = now(world, job)
    attempt(world, delivery).conclude(job, result or LoopEnd(job, None))
    assert now(world, job).state is ended


@pytest.mark.parametrize("fails", [True, False])
def test_a_message_stays_until_the_list_is_deleted(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    world, job, delivery = running()
    change(world, job, payload="list")

    def delete(_name: str) -> None:
        if fails:
            raise Transient("down")

    monkeypatch.setattr(world.payloads, "delete", delete)
    job = now(world, job)
    decision = attempt(world, delivery).conclude(job, LoopEnd(job, None))
    assert isinstance(decision, KeepMessage if fails else DeleteMessage)


@pytest.mark.parametrize(
    ("error", "counted"), [(Denied("no right"), 1), (Transient("down"), 0), (Crashed("bug"), 0)]
)
def test_only_a_missing_permission_counts_as_one(error: Transient, counted: int) -> None:
    world, job, delivery = running()
    attempt(world, delivery).conclude(job, error)
    assert world.telemetry.total(Metric.DENIED) == counted


@pytest.mark.parametrize(
    ("stop", "to"), [(StopReason.OUT_OF_TIME, "bulk"), (StopReason.HAND_OVER, "small")]
)
def test_a_job_is_handed_over_to_the_lane_that_the_log_names(stop: StopReason, to: str) -> None:
    world, job, delivery = running()
    attempt(world, delivery).conclude(job, LoopEnd(job, stop))
    [line] = [line for line in world.telemetry.lines if line.action == "handed_over"]
    assert line.fields["to"] == now(world, job).lane.value == to
