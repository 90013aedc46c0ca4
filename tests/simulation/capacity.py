"""A store that works on one thing at a time, bulk workers and small jobs on it, in virtual time.

The protocol's simulation decides what fails; this one has no faults, but calls take time: each
waits for those that came before it, as on a database at its capacity.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.dwell_report import DwellReport
from handlers.jobs.execution.governor import Governor
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.pace import PaceSettings
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, new_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.writes import Write
    from handlers.testing.job_store import MemoryStore
    from handlers.testing.record_store import MemoryRecordStore
    from handlers.testing.runtime import ManualRuntime
    from handlers.testing.world import MemoryWorld

CHUNK: Final = 48
SMALL_EVERY: Final = 250
"""ms between two small jobs."""
SMALL_WORKERS: Final = 2
POLL: Final = 10
"""ms between two looks of a worker at its queue."""
CALL_MS: Final = 2.0
RECORD_MS: Final = 2.0
"""What a call takes, and each record it writes, when it is its turn."""


@dataclass
class Queue:
    """Who waits for the store."""

    runtime: ManualRuntime
    free_at: float = 0

    def serve(self, ms: float) -> None:
        """Return when the call has had its turn and so much time."""
        now = self.runtime.now()
        self.free_at = max(self.free_at, now) + ms
        self.runtime.sleep(round(self.free_at - now))


class BusyStore:
    """The in-memory store behind such a queue."""

    def __init__(self, inner: MemoryStore, queue: Queue) -> None:
        self._inner = inner
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._inner, name)

        def in_turn(*args: Any, **more: Any) -> Any:
            self._queue.serve(CALL_MS)
            return act(*args, **more)

        return in_turn

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        self._queue.serve(CALL_MS + RECORD_MS * max(0, len(writes) - 2))
        self._inner.transact(action, writes)


@dataclass(frozen=True)
class BusyRecords:
    inner: MemoryRecordStore
    queue: Queue

    def read(self, tenant: str, ids: Sequence[str]) -> Any:
        self.queue.serve(CALL_MS)
        return self.inner.read(tenant, ids)

    def change(self, record: Record, fields: Any, job_id: str) -> Write:
        return self.inner.change(record, fields, job_id)

    def remove(self, record: Record, job_id: str) -> Write:
        return self.inner.remove(record, job_id)


@dataclass
class Town:
    """Bulk workers with a job each, and small jobs that come one after another."""

    workers: int
    seconds: int
    governed: bool
    bulk: list[Job] = field(default_factory=list)
    small: list[Job] = field(default_factory=list)
    governors: list[Governor] = field(default_factory=list)
    over: bool = False

    def __post_init__(self) -> None:
        limits = Limits(chunk_size=CHUNK, small_max_items=10, tenant_slots_bulk=9)
        self.base = memory_world(limits=limits)
        self.runtime = self.base.runtime
        queue = Queue(self.runtime)
        self.world: MemoryWorld = replace(
            self.base,
            store=BusyStore(self.base.store, queue),  # type: ignore[arg-type]
            records=BusyRecords(self.base.records, queue),  # type: ignore[arg-type]
        )

    def run(self) -> Town:
        self._fill()
        tasks = [self.runtime.spawn(f"small-{n}", self._small_worker) for n in range(SMALL_WORKERS)]
        # Quiet first, so that the small lane knows how it is without bulk work.
        self._come(10)
        self.idle, self.small = self.dwells, []
        tasks += [self.runtime.spawn(f"bulk-{n}", self._bulk_worker) for n in range(self.workers)]
        self._come(self.seconds)
        self.over = True
        for task in tasks:
            task.join()
        return self

    @property
    def dwells(self) -> list[int]:
        """ms, sorted, of the small jobs that have started."""
        jobs = [read_job(self.base, job.id) for job in self.small]
        return sorted(job.dwell_ms for job in jobs if job and job.dwell_ms is not None)

    @property
    def p50(self) -> float:
        return self.dwells[len(self.dwells) // 2] / self.idle[len(self.idle) // 2]

    def done(self) -> list[int]:
        """Records of each bulk job that are done."""
        jobs = [read_job(self.base, job.id) for job in self.bulk]
        return [job.position for job in jobs if job is not None]

    # --- inside -------------------------------------------------------------------------------

    def _fill(self) -> None:
        each = 600 * self.seconds // self.workers
        ids = [f"r{number:06}" for number in range(each * self.workers + 3)]
        self.base.records.load(TENANT, {id_: {"price": 1, "version": 1} for id_ in ids})
        self._few = ids[-3:]
        for number in range(self.workers):
            part = ids[number * each : (number + 1) * each]
            self.bulk.append(new_job(self.base, part, f"bulk-{number}"))

    def _come(self, seconds: int) -> None:
        until = self.runtime.now() + seconds * 1000
        while self.runtime.now() < until:
            next_at = self.runtime.now() + SMALL_EVERY
            self.small.append(new_job(self.world, self._few, f"small-{self.runtime.token()}"))
            self.runtime.sleep(next_at - self.runtime.now())

    def _small_worker(self) -> None:
        report = DwellReport(self.world)
        while not self.over:
            for delivery in self.base.queues[Lane.SMALL].receive(1, 0):
                worker = Worker("small", started=report.started)
                decision = on_message(self.world, delivery, worker)
                report.leave()
                apply_decision(self.base.queues[Lane.SMALL], delivery, decision)
            self.runtime.sleep(POLL)

    def _bulk_worker(self) -> None:
        governor = Governor(PaceSettings(), self.runtime) if self.governed else None
        if governor is not None:
            self.governors.append(governor)
        for delivery in self.base.queues[Lane.BULK].receive(1, 0):
            worker = Worker("bulk", stopping=lambda: self.over, governor=governor)
            on_message(self.world, delivery, worker)
