"""The rate and the time left of a job that was interrupted: only its work counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from handlers.web.views import progress
from tests.support.jobs import TENANT, fill, new_job, now, run_next

COUNT: Final = 100
CHUNK_MS: Final = 2000
HOUR: Final = 3_600_000
RATE: Final = 5.0
"""Records a second: ten records, and the chunk's time before the next."""
FIRST: Final = 3
"""Chunks before the interruption."""


class Died(BaseException):
    """The worker's process is gone."""


class Walk:
    """A job whose chunks take time, walked until something befalls it."""

    def __init__(self) -> None:
        self.world: MemoryWorld = memory_world(limits=Limits(chunk_size=10))
        self.job = new_job(self.world, fill(self.world, COUNT))

    def run(self, chunks: int, then: Callable[[], bool] = lambda: True) -> None:
        """Deliver the message. After so many chunks, ``then`` says whether the process is asked to
        stop."""
        looks = 0

        def stopping() -> bool:
            nonlocal looks
            looks += 1
            if looks > chunks:
                return then()
            self.world.runtime.sleep(CHUNK_MS)
            return False

        run_next(self.world, Lane.SMALL, stopping=stopping)

    @property
    def seen(self) -> Job:
        return now(self.world, self.job)

    def progress(self) -> dict[str, float]:
        seen = progress(self.seen, self.world.runtime.now()) or {}
        return {name: float(value) for name, value in seen.items()}


def paused(walk: Walk, _: pytest.MonkeyPatch) -> None:
    def pause() -> bool:
        control.pause(walk.world, TENANT, walk.job.id)
        return False

    walk.run(FIRST, pause)
    assert walk.seen.state is State.PAUSED
    walk.world.runtime.sleep(HOUR)
    control.resume(walk.world, TENANT, walk.job.id)


def given_back(walk: Walk, _: pytest.MonkeyPatch) -> None:
    """As for a deployment, and as at the end of a slice."""
    walk.run(FIRST)
    assert walk.seen.state is State.QUEUED
    walk.world.runtime.sleep(HOUR)


def retried_later(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: object) -> None:
        raise Transient("throttled")

    def fail() -> bool:
        broken.setattr(MemoryRecordStore, "read", down)
        return False

    with monkeypatch.context() as broken:
        walk.run(FIRST, fail)
        # Attempts that come to nothing, each with its own waits.
        for _ in range(2):
            walk.world.runtime.sleep(HOUR)
            walk.run(0, fail)
    assert walk.seen.state is State.QUEUED
    walk.world.runtime.sleep(HOUR)


def crashed(walk: Walk, _: pytest.MonkeyPatch) -> None:
    def die() -> bool:
        walk.world.runtime.sleep(CHUNK_MS)
        raise Died

    with pytest.raises(Died):
        walk.run(FIRST, die)
    assert walk.seen.state is State.RUNNING
    walk.world.runtime.sleep(HOUR)
    Recovery(walk.world).run()


def failed_and_retried(walk: Walk, _: pytest.MonkeyPatch) -> None:
    walk.run(FIRST)
    spent = walk.world.timing.small.max_attempts
    key = control_table.job_key(walk.job.id)
    walk.world.store.transact("spent", [Update(key, set={"attempt": spent})])
    walk.run(0)
    assert walk.seen.state is State.FAILED
    walk.world.runtime.sleep(HOUR)
    control.retry(walk.world, TENANT, walk.job.id)


@pytest.mark.parametrize("befall", [paused, given_back, retried_later, crashed, failed_and_retried])
def test_c96_waiting_of_any_kind_is_not_work(
    befall: Callable[[Walk, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = Walk()
    befall(walk, monkeypatch)
    assert walk.seen.position >= FIRST * 10
    assert walk.progress()["per_second"] == pytest.approx(RATE, rel=0.5)
    told: list[dict[str, float]] = []

    def look() -> bool:
        told.append(walk.progress())
        return True

    walk.run(1, look)
    began = walk.world.runtime.now()
    left = COUNT - walk.seen.position
    walk.run(COUNT)
    truth = (walk.world.runtime.now() - began) / 1000
    assert walk.seen.state is State.SUCCEEDED
    assert truth == pytest.approx(left / RATE, abs=CHUNK_MS / 1000)
    [progress_then] = told
    assert truth / 2 <= progress_then["eta_seconds"] <= truth * 2
    assert progress_then["per_second"] == pytest.approx(RATE, rel=0.5)
    walk.world.runtime.sleep(HOUR)
    assert walk.progress()["per_second"] == pytest.approx(RATE, rel=0.5)


def test_c96_a_job_that_an_older_version_began_keeps_its_whole_time() -> None:
    """Its work was not counted; from the next attempt on the new chunks are."""
    walk = Walk()
    walk.run(FIRST)
    key = control_table.job_key(walk.job.id)
    old = Update(key, set={"worked_ms": 0}, remove=("worked_until",))
    walk.world.store.transact("of an older version", [old])
    before = walk.progress()["per_second"]
    walk.run(1)
    assert walk.seen.worked_ms >= FIRST * CHUNK_MS
    assert walk.progress()["per_second"] == pytest.approx(before, rel=0.5)
