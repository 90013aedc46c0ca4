"""The bulk lane's worker: a process with a few slots, each taking one message at a time.

SIGTERM: no slot takes another message, every running job stops at its chunk boundary and gives
its attempt back, its message is free at once, and the process exits with 0.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .aws.protection import protection_from
from .bootstrap import work_settings, world
from .jobs.attempt import Worker
from .jobs.errors import OutcomeUnknown, ReceiptExpired, Transient
from .jobs.model import Lane
from .jobs.outcomes import KeepMessage, act
from .jobs.run import on_message

if TYPE_CHECKING:
    from .aws.protection import Protection
    from .jobs.outcomes import Decision
    from .jobs.ports import Delivery, World

SERVICE: Final = "bulk_worker"
AFTER_ERROR: Final = 1.0
"""Seconds a slot waits after something went wrong that waiting may mend."""

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
                self._settle(delivery, KeepMessage("stopping", 0))
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
        worker = Worker(name=self.name, stopping=self.stopping.is_set)
        with self.protection:
            decision = on_message(self.world, delivery, worker)
        self._settle(delivery, decision)

    def _settle(self, delivery: Delivery, decision: Decision) -> None:
        try:
            act(self.world.queues[Lane.BULK], delivery, decision)
        except (Transient, OutcomeUnknown, ReceiptExpired) as error:
            self.world.telemetry.log(
                "message_not_settled", message_id=delivery.message_id, why=str(error)
            )


def main() -> None:
    """Serve until SIGTERM or SIGINT. Bad settings stop the process before it takes a message."""
    settings = work_settings()
    here = world(SERVICE, long_poll=True, connections=4 * settings.bulk_slots)
    stopping = threading.Event()
    asked: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        # No lock in a handler: it runs in the middle of whatever the main thread was doing.
        signal.signal(each, lambda number, _: asked.append(number))
    protection = protection_from(os.environ, here.telemetry)
    process = f"{os.uname().nodename}/{os.getpid()}/{here.runtime.token()}"
    slots = [
        threading.Thread(
            target=Slot(
                here, f"{process}/{n}", stopping, protection, settings.bulk_poll_seconds
            ).run,
            name=f"slot-{n}",
        )
        for n in range(settings.bulk_slots)
    ]
    here.telemetry.log("worker_started", slots=len(slots), process=process)
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


if __name__ == "__main__":
    main()
