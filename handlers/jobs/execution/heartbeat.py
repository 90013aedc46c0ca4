"""Keeping a running job's lease and its message, from a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage.control_table import read_job
from ..storage.transaction import Rejected, execute
from ..transitions.attempt import renew_lease, say_hung
from ..words.errors import FairlaneError, OutcomeUnknown, ReceiptExpired, Refused, Transient
from ..words.metrics import Metric
from ..words.timing import SECOND, VISIBILITY_CAP, ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..words.job import Job
    from ..words.ports import Delivery, Task, World

MAX_RECEIPTS: Final = 4
"""Receipt handles one beat extends; a job with more messages than that gets some handed over again
and again, which is harmless."""


class Heartbeat:
    """Beats every ``heartbeat`` seconds until stopped.

    A failed beat is logged and counted, whatever it failed with, and the next beat tries again.
    ``lost`` becomes true when a beat finds the lease gone, or when no beat has succeeded for as
    long as a lease lasts.

    An attempt that has not moved on for ``hang_after`` gets no more beats: its lease expires, and
    its message comes back, as if its worker had died. Its thread may never return.
    """

    def __init__(
        self,
        world: World,
        job: Job,
        delivery: Delivery,
        on_hang: Callable[[], None] = lambda: None,
    ) -> None:
        """on_hang: called once, from the heartbeat's thread, when the attempt hangs."""
        self._world = world
        self._on_hang = on_hang
        self._job = job
        self._delivery = delivery
        self._timing = world.timing.lane(job.lane)
        self._stop = world.runtime.event()
        self._task: Task | None = None
        self._gone = False
        self._kept_at = self._moved_at = self._woke_at = world.runtime.now()
        self.receipt = delivery.receipt
        """The newest receipt handle known of the job's message."""
        self._receipts = {delivery.receipt: None}

    def start(self) -> None:
        self._task = self._world.runtime.spawn(f"heartbeat-{self._job.id}", self._run)

    def stop(self) -> None:
        """Returns when no beat is in flight, so that none can revive a lease released next."""
        self._stop.set()
        if self._task:
            self._task.join()

    def moved(self) -> None:
        """The attempt has moved on: a page is read, a chunk committed, a wait is being watched."""
        self._moved_at = self._world.runtime.now()

    @property
    def lost(self) -> bool:
        silent = self._world.runtime.now() - self._kept_at
        return self._gone or silent >= ms(self._timing.lease_ttl)

    def _run(self) -> None:
        while not self._stop.wait(ms(self._timing.heartbeat)):
            try:
                self._beat()
            except Exception as error:  # noqa: BLE001  the thread must outlive every bad beat
                self._failed("beat_crashed", error)
            if self._gone:
                return

    def _beat(self) -> None:
        at = self._world.runtime.now()
        if self._hangs(at):
            self._gone = True
            self._give_up()
            return
        beat = renew_lease(self._world, self._job)
        try:
            self._world.store.transact(beat.action, list(beat.writes.values()))
        except Refused as refused:
            self._gone = not refused.only_contention
            self._log("beat_refused")
            return
        except (Transient, OutcomeUnknown) as error:
            self._failed("beat_failed", error)
            return
        self._kept_at = at
        self._keep_message()

    def _hangs(self, at: int) -> bool:
        """A process that stood still as a whole has not hung: it begins to be watched anew."""
        if at - self._woke_at >= ms(self._timing.lease_ttl):
            self._moved_at = at
        self._woke_at = at
        return at - self._moved_at >= ms(self._world.timing.hang_after)

    def _give_up(self) -> None:
        """Count, log and say on the job that the attempt hangs."""
        job, seconds = self._job, self._world.timing.hang_after
        self._world.telemetry.count(Metric.JOB_HUNG, lane=job.lane, operation=job.operation)
        self._log("job_hung", why=f"no progress for {seconds:g} s", position=job.position)
        self._on_hang()
        why = f"it got no further for {seconds:g} s and was given up"
        try:
            execute(self._world, say_hung(job, why))
        except (Transient, Rejected) as error:
            self._log("hang_not_noted", why=str(error))

    def _keep_message(self) -> None:
        """Extend this delivery, and those that other workers handed over: a job can have more
        than one message, and one that is forgotten is received until it is a dead letter."""
        try:
            job = read_job(self._world, self._job.id)
        except Exception as error:  # noqa: BLE001  the receipts that are known are extended
            self._failed("beat_without_receipt", error)
            job = None
        if job and job.receipt:
            self.receipt = job.receipt
            self._receipts[job.receipt] = None
        for receipt in tuple(self._receipts)[:-MAX_RECEIPTS]:
            del self._receipts[receipt]
        for receipt in tuple(self._receipts):
            self._extend(receipt)

    def _extend(self, receipt: str) -> None:
        left = self._delivery.first_received_at + VISIBILITY_CAP - self._world.runtime.now()
        seconds = min(self._timing.visibility, left // SECOND)
        if seconds <= 0:
            return
        try:
            self._world.queues[self._job.lane].set_visibility(receipt, seconds)
        except ReceiptExpired:
            # The message is on its way to another worker, which will hand its receipt over.
            del self._receipts[receipt]
            self._log("receipt_expired")
        except Exception as error:  # noqa: BLE001  the other receipts are extended all the same
            self._failed("beat_without_visibility", error)

    def _failed(self, action: str, error: Exception) -> None:
        job = self._job
        self._world.telemetry.count(Metric.BEATS_FAILED, lane=job.lane, operation=job.operation)
        expected = isinstance(error, FairlaneError)
        self._log(action, **({"why": str(error)} if expected else {"error": error}))

    def _log(self, action: str, **fields: object) -> None:
        self._world.telemetry.log(
            action, job_id=self._job.id, tenant=self._job.tenant, fence=self._job.fence, **fields
        )
