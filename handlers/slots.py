"""The bulk worker's slots, each taking one message at a time.

When the process is asked to end, no slot takes another message; every running job stops at its
chunk boundary and gives its attempt back, its message is visible at once, and the process exits
with 0.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .aws.protection import protection_from
from .bootstrap import work_settings, world
from .health import Health
from .jobs.execution.decisions import KeepMessage, apply_decision
from .jobs.execution.governor import Governor
from .jobs.execution.rate_limiter import RateLimiter
from .jobs.execution.stopping import Worker
from .jobs.execution.turns import FreeSlot
from .jobs.execution.worker import on_message
from .jobs.words.errors import OutcomeUnknown, ReceiptExpired, Transient
from .jobs.words.job import Lane
from .jobs.words.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .aws.protection import Protection
    from .jobs.execution.decisions import Decision
    from .jobs.words.ports import Delivery, World

SERVICE: Final = "bulk_worker"
AFTER_ERROR: Final = 1.0
"""Seconds a slot waits after an error that may pass."""

LOOK: Final = 0.1
"""Seconds between two looks whether the process was asked to end."""


@dataclass(frozen=True)
class Slot:
    """Receives a message only when it can start it at once, and runs it to its decision."""

    world: World
    name: str
    stopping: threading.Event
    protection: Protection
    poll_seconds: int
    governor: Governor | None = None
    limiter: RateLimiter | None = None
    health: Health = field(default_factory=Health)
    hung: threading.Event = field(default_factory=threading.Event)
    """Set when a slot's attempt hangs."""
    free: FreeSlot = field(default_factory=FreeSlot)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._next()
            except Exception as error:  # noqa: BLE001  a bug must not take the slot with it
                self.world.telemetry.log("slot_crashed", slot=self.name, error=error)
                self.stopping.wait(AFTER_ERROR)

    def _next(self) -> None:
        for delivery in self._receive():
            if self.stopping.is_set():
                self._apply_decision(delivery, KeepMessage("stopping", 0))
            else:
                self._serve(delivery)

    def _receive(self) -> list[Delivery]:
        try:
            received = list(self.world.queues[Lane.BULK].receive(1, self.poll_seconds))
        except Transient as error:
            self.world.telemetry.log("receive_failed", why=str(error))
            self._pause_after_a_failed_receive()
            return []
        except Exception:
            self._pause_after_a_failed_receive()
            raise
        self.health.received()
        return received

    def _pause_after_a_failed_receive(self) -> None:
        self.world.telemetry.count(Metric.RECEIVES_FAILED, lane=Lane.BULK)
        self.stopping.wait(self.health.failed(AFTER_ERROR))

    def _serve(self, delivery: Delivery) -> None:
        name = f"{self.name}/{self.world.runtime.token()}"
        worker = Worker(
            name,
            stopping=self.stopping.is_set,
            governor=self.governor,
            limiter=self.limiter,
            slot=self.free,
            hung=self.hung.set,
        )
        with self.protection, self.health.serving():
            decision = on_message(self.world, delivery, worker)
        self._apply_decision(delivery, decision)

    def _apply_decision(self, delivery: Delivery, decision: Decision) -> None:
        try:
            apply_decision(self.world.queues[Lane.BULK], delivery, decision)
        except (Transient, OutcomeUnknown, ReceiptExpired) as error:
            self.world.telemetry.log(
                "message_not_settled", message_id=delivery.message_id, why=str(error)
            )


def serve(asked: Sequence[int]) -> int:
    """Serve until a signal's number is in ``asked``; with one there already, take no message.

    Returns the status of the process: 1 when it ends by itself, because for minutes it could not
    receive, or because an attempt hangs. ECS starts another one, and a deployment of workers like
    that is rolled back.
    """
    settings = work_settings()
    here = world(SERVICE, long_poll=True, connections=4 * settings.bulk_slots)
    stopping = threading.Event()
    health, hung = Health(), threading.Event()
    protection = protection_from(os.environ, here.telemetry, settings.bulk_protection_minutes)
    process = f"{os.uname().nodename}/{os.getpid()}"
    slots = [
        threading.Thread(
            target=Slot(
                here,
                f"{process}/{n}",
                stopping,
                protection,
                settings.bulk_poll_seconds,
                Governor(settings.pace, here.runtime) if settings.pace.on else None,
                RateLimiter(here.runtime),
                health,
                hung,
            ).run,
            name=f"slot-{n}",
            # One that hangs must not keep the process.
            daemon=True,
        )
        for n in range(settings.bulk_slots)
    ]
    here.telemetry.log("worker_started", slots=len(slots), process=process)
    if asked:
        stopping.set()
    for slot in slots:
        slot.start()
    while not asked and not health.hopeless and not hung.is_set():
        health.beat()
        time.sleep(LOOK)
    stopping.set()
    if asked:
        here.telemetry.log("worker_stopping", process=process, signal=asked[0])
    elif not hung.is_set():
        here.telemetry.log("worker_cannot_work", process=process)
    _join(slots, hung, settings.timing.stop_timeout)
    if hung.is_set():
        here.telemetry.log("worker_hung", process=process)
    protection.close()
    here.telemetry.log("worker_stopped", process=process)
    return 0 if asked and not hung.is_set() else 1


def _join(slots: Sequence[threading.Thread], hung: threading.Event, seconds: float) -> None:
    """Return when every slot has ended; once one hangs, at most so many seconds later. By then the
    others have given their jobs back, and the lease of the one that hangs is as good as expired."""
    since: float | None = None
    while any(slot.is_alive() for slot in slots):
        if hung.is_set():
            since = time.monotonic() if since is None else since
            if time.monotonic() - since >= seconds:
                return
        time.sleep(LOOK)
