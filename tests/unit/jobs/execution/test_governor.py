"""The governor of a slot: what it measures, when it looks, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.governor import LOOK_EVERY, Governor
from handlers.jobs.execution.pace import FULL, LEAST_CHUNK
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.storage.small_dwell import write_dwell
from handlers.jobs.words.errors import Reason, Refused, Transient, Why
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.pace import PacedBy, PaceSettings
from handlers.jobs.words.states import State
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import memory_world
from handlers.web.views import job_view
from tests.support.jobs import fill, new_job, now, receive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Write
    from handlers.testing.world import MemoryWorld

CHUNK: Final = 32
COMMIT_MS: Final = 300
SETTINGS: Final = PaceSettings()


class Slow(MemoryStore):
    """A store whose chunks take a while, and that can refuse them."""

    def __init__(self, wait: Callable[[int], None]) -> None:
        super().__init__()
        self.wait = wait
        self.refuse: list[Exception] = []
        self.sizes: list[int] = []
        self.each: Callable[[int], None] = lambda _: None

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        if action == "commit_chunk":
            self.sizes.append(len(writes) - 2)
            self.wait(COMMIT_MS)
            self.each(len(self.sizes))
            if self.refuse:
                raise self.refuse.pop(0)
        super().transact(action, writes)


class Slot:
    """A bulk slot and one job of many chunks."""

    def __init__(self, chunks: int = 30, settings: PaceSettings = SETTINGS) -> None:
        made = memory_world(limits=Limits(chunk_size=CHUNK, small_max_items=1))
        self.store = Slow(made.runtime.sleep)
        self.world: MemoryWorld = replace(
            made, store=self.store, records=MemoryRecordStore(self.store)
        )
        self.governor = Governor(settings, made.runtime)
        self.job = new_job(self.world, fill(self.world, chunks * CHUNK))

    def run(self, governor: Governor | None = None) -> Job:
        worker = Worker("w", governor=governor or self.governor)
        on_message(self.world, receive(self.world, Lane.BULK), worker)
        return now(self.world, self.job)

    def suffer(self, _chunk: int) -> None:
        """The small lane waits long."""
        write_dwell(self.world, 0, dwell_ms=700, quiet_ms=30)

    def lines(self) -> list[int]:
        seen = [li for li in self.world.telemetry.lines if li.action == "pace_changed"]
        return [int(str(line.fields["percent"])) for line in seen]


def test_alone_it_works_at_full_pace() -> None:
    slot = Slot()
    job = slot.run()
    assert job.state is State.SUCCEEDED
    assert set(slot.store.sizes) == {CHUNK}
    assert (slot.governor.pace, job.pace, job.paced_by) == (FULL, None, None)


def test_it_backs_off_within_seconds_while_small_jobs_suffer() -> None:
    slot = Slot()
    slot.store.each = slot.suffer
    job = slot.run()
    assert job.state is State.SUCCEEDED
    assert job.succeeded == job.total
    assert slot.governor.why is PacedBy.SMALL_LANE
    assert slot.governor.percent < 25
    within = 3 * LOOK_EVERY // COMMIT_MS
    assert min(slot.store.sizes[:within]) <= CHUNK // 2
    assert min(slot.store.sizes) == LEAST_CHUNK


def test_it_says_what_it_does() -> None:
    slot = Slot()
    views = []

    def see(_chunk: int) -> None:
        slot.suffer(_chunk)
        views.append(job_view(now(slot.world, slot.job), slot.world.runtime.now()).get("pace"))

    slot.store.each = see
    slot.run()
    assert views[0] is None
    assert {"percent": 50, "why": "small_lane"} in views
    assert slot.lines()[:2] == [50, 25]
    paces = [m for m in slot.world.telemetry.counts if m.metric == Metric.PACE]
    assert paces
    assert {m.lane for m in paces} == {Lane.BULK}
    assert "pace" not in job_view(now(slot.world, slot.job), 0)


def test_it_comes_back_when_nobody_suffers() -> None:
    slot = Slot(chunks=150)
    slot.store.each = lambda chunk: slot.suffer(chunk) if chunk < 20 else None
    job = slot.run()
    assert job.state is State.SUCCEEDED
    assert slot.governor.pace == FULL
    assert slot.governor.why is None
    assert slot.lines()[-1] == 100


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Transient(), PacedBy.THROTTLING),
        (Refused([None, Reason(Why.THROTTLED)]), PacedBy.THROTTLING),
        (Refused([None, Reason(Why.CONFLICT)]), PacedBy.CONFLICTS),
    ],
)
def test_refusals_slow_it_down(error: Exception, why: PacedBy) -> None:
    slot = Slot(chunks=20)
    slot.store.refuse = [error] * 4
    seen: list[PacedBy | None] = []
    slot.store.each = lambda _: seen.append(slot.governor.why)
    job = slot.run()
    assert job.state is State.SUCCEEDED
    assert why in seen
    assert slot.governor.pace < FULL


def test_a_full_floor_is_full_pace() -> None:
    slot = Slot(settings=PaceSettings(floor_percent=100))
    slot.store.each = slot.suffer
    slot.run()
    assert set(slot.store.sizes) == {CHUNK}


def test_old_samples_are_no_news() -> None:
    slot = Slot()
    slot.suffer(0)
    slot.world.runtime.sleep(60_000)
    slot.run()
    assert slot.governor.pace == FULL


def test_a_worker_without_a_governor_never_looks() -> None:
    slot = Slot()
    slot.store.each = slot.suffer
    on_message(slot.world, receive(slot.world, Lane.BULK), Worker("w"))
    assert set(slot.store.sizes) == {CHUNK}
    job = read_job(slot.world, slot.job.id)
    assert job is not None
    assert job.state is State.SUCCEEDED
