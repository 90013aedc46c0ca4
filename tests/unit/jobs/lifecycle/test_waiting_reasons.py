"""Which of the reasons that could hold a job up a client is told of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.lifecycle import waiting
from handlers.jobs.lifecycle.waiting import SinkWait, wait_now
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Put, Update
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Item
    from handlers.testing.world import MemoryWorld

GUESS: Final = 77


@pytest.fixture
def bulk(monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryWorld, Job]:
    """A running job of the bulk lane, in a world where every estimate is a guess."""
    world = memory_world(limits=Limits(small_max_items=1))
    monkeypatch.setattr(waiting, "expected_start", lambda *_: GUESS)
    return world, begin(world, new_job(world, fill(world, 2)))


def lease_is(world: MemoryWorld, job: Job, **change: int | str) -> None:
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("change", [Update(key, set=change)])


def test_a_queued_job_is_expected_when_its_retry_is_due_or_by_estimate(
    bulk: tuple[MemoryWorld, Job],
) -> None:
    world, job = bulk
    queued = job.model_copy(update={"state": State.QUEUED})
    later = world.runtime.now() + 1
    for retry_at, expected in ((None, GUESS), (later, later), (later - 1, GUESS)):
        wait = wait_now(world, queued.model_copy(update={"retry_at": retry_at}))
        assert wait is not None
        assert (wait.ahead, wait.expected_start) == (0, expected)


def test_a_running_job_says_that_its_worker_is_lost_only_while_it_is(
    bulk: tuple[MemoryWorld, Job],
) -> None:
    world, job = bulk
    lost = job.model_copy(update={"waiting_reason": Waiting.WORKER_LOST})
    limited = job.model_copy(update={"waiting_reason": Waiting.RATE_LIMIT})
    wait = wait_now(world, limited)
    assert wait is not None
    assert wait.reason is Waiting.RATE_LIMIT
    assert wait_now(world, lost) is None
    assert wait_now(world, job) is None
    lease_is(world, job, expires_at=world.runtime.now())
    for each in (job, lost, limited):
        wait = wait_now(world, each)
        assert wait is not None
        assert (wait.reason, wait.ahead) == (Waiting.WORKER_LOST, None)


def test_an_expired_lease_of_another_job_says_nothing_of_this_one(
    bulk: tuple[MemoryWorld, Job],
) -> None:
    world, job = bulk
    assert lease_of(world, job).job_id == job.id
    lease_is(world, job, expires_at=world.runtime.now(), job_id="other")
    assert wait_now(world, job) is None
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("free", [Update(key, remove=("expires_at",))])
    assert wait_now(world, job) is None


def test_only_a_settling_job_names_its_sinks(bulk: tuple[MemoryWorld, Job]) -> None:
    """Each with what it answered first, of the newest chunks that have an answer."""
    world, job = bulk
    for position, answers in ((0, {"a": "busy"}), (1, {"a": "down", "b": "no"}), (2, {})):
        row: Item = {"todo": {"a": None, "b": None}, "answers": answers}
        world.store.transact("row", [Put(control_table.effect_key(job.id, position), row)])
    settling = wait_now(world, job.model_copy(update={"state": State.SETTLING}))
    assert settling is not None
    assert settling.sinks == (SinkWait("a", "busy"), SinkWait("b", "no"))
    paused = wait_now(world, job.model_copy(update={"state": State.PAUSED}))
    assert paused is not None
    assert paused.sinks == ()


def test_a_start_is_estimated_from_the_jobs_before_it_in_its_lane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(waiting, "next_start", lambda _now, _starts, ahead: asked.append(ahead))
    world = memory_world(limits=Limits(small_max_items=1, tenant_slots_bulk=9))
    ids = fill(world, 2)
    for number in range(3):
        job = new_job(world, ids, f"s{number}")
        world.runtime.sleep(1)
        waiting.expected_start(world, job)
    assert asked == [0, 1, 2]
    begun = begin(world, job)
    assert waiting.expected_start(world, begun) is None
    assert asked == [0, 1, 2]
