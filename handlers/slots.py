"""The bulk worker's slots, each taking one message at a time.

When the process is asked to end, no slot takes another message; every running job stops at its
chunk boundary and gives its attempt back, its message is visible at once, and the process exits
with 0.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .aws.protection import protection_from
from .bootstrap import work_settings, world
from .jobs.execution.decisions import KeepMessage, apply_decision
from .jobs.execution.governor import Governor
from .jobs.execution.rate_limiter import RateLimiter
from .jobs.execution.stopping import Worker
from .jobs.execution.worker import on_message
from .jobs.words.errors import OutcomeUnknown, ReceiptExpired, Transient
from .jobs.words.job import Lane

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
            return list(self.world.queues[Lane.BULK].receive(1, self.poll_seconds))
        except Transient as error:
            self.world.telemetry.log("receive_failed", why=str(error))
            self.stopping.wait(AFTER_ERROR)
            return []

    def _serve(self, delivery: Delivery) -> None:
        name = f"{self.name}/{self.world.runtime.token()}"
        worker = Worker(
            name,
            stopping=self.stopping.is_set,
            governor=self.governor,
            limiter=self.limiter,
        )
        with self.protection:
            decision = on_message(self.world, delivery, worker)
        self._apply_decision(delivery, decision)

    def _apply_decision(self, delivery: Delivery, decision: Decision) -> None:
        try:
            apply_decision(self.world.queues[Lane.BULK], delivery, decision)
        except (Transient, OutcomeUnknown, ReceiptExpired) as error:
            self.world.telemetry.log(
                "message_not_settled", message_id=delivery.message_id, why=str(error)
            )


def serve(asked: Sequence[int]) -> None:
    """Serve until a signal's number is in ``asked``; with one there already, take no message."""
    settings = work_settings()
    here = world(SERVICE, long_poll=True, connections=4 * settings.bulk_slots)
    stopping = threading.Event()
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
            ).run,
            name=f"slot-{n}",
        )
        for n in range(settings.bulk_slots)
    ]
    here.telemetry.log("worker_started", slots=len(slots), process=process)
    if asked:
        stopping.set()
    for slot in slots:
        slot.start()
    while not asked:
        time.sleep(LOOK)
    stopping.set()
    here.telemetry.log("worker_stopping", process=process, signal=asked[0])
    for slot in slots:
        slot.join()
    protection.close()
    here.telemetry.log("worker_stopped", process=process)
