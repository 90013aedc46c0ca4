"""Celery under the load of ``lanes``: the same number of slots, SQS and the database of the same
local AWS, and tasks that do the same database work."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from scripts.local import processes
from scripts.local.errors import LocalError
from scripts.local.ministack import CREDENTIALS, HOST
from scripts.local.project import PACKAGES
from scripts.local.stack import LocalStack

from .lanes import BULK_TENANTS, ITEMS, SMALL_TENANT, until
from .place import SLOTS

if TYPE_CHECKING:
    from scripts.local.processes import Process

STOP_GRACE_S: Final = 10
QUIETLY: Final = ("--without-gossip", "--without-mingle", "--without-heartbeat")


class CeleryLanes:
    """``System``. Its clock for a small task runs from before it is sent to its first line."""

    def __init__(
        self,
        folder: Path,
        broker: str,
        *,
        small: str,
        bulk: str,
        slots: int,
        bulk_records: int,
    ) -> None:
        """folder: of the workers; small, bulk: the queues' names; slots: that serve the bulk
        queue; bulk_records: of each bulk task."""
        from . import celery_app  # noqa: PLC0415  not everybody has Celery

        self._tasks = celery_app
        self._app = celery_app.app_of(broker)
        self._folder = folder
        self._queues = {"small": small, "bulk": bulk}
        self._slots = slots
        self._bulk_records = bulk_records
        self._sent: dict[str, float] = {}
        """Milliseconds, by task."""
        self._bulk: list[str] = []

    def fill(self, jobs: int) -> None:
        for number in range(jobs):
            tenant = BULK_TENANTS[number % len(BULK_TENANTS)]
            self._bulk.append(self._send("bulk", tenant, self._bulk_records))
        wanted = min(jobs, self._slots)
        until("every bulk slot works", lambda: len(self._noted("began", self._bulk)) >= wanted)

    def small(self, number: int) -> None:
        now = time.time() * 1000
        task = self._send("small", SMALL_TENANT, number * ITEMS, ITEMS)
        self._sent[task] = now

    def waits(self) -> Sequence[float]:
        until("every small task ends", lambda: self._ended(self._sent))
        began = self._noted("began", self._sent)
        return [began[task] - sent for task, sent in self._sent.items()]

    def full(self) -> bool:
        began = len(self._noted("began", self._bulk))
        return began - len(self._noted("ended", self._bulk)) >= self._slots

    def done(self) -> int:
        lines = _lines(self._folder / self._tasks.NOTED)
        chunks: int = sum(line["what"] == "chunk" and line["task"] in self._bulk for line in lines)
        return chunks * int(self._tasks.CHUNK)

    def drain(self) -> None:
        stop = self._folder / self._tasks.STOP
        stop.touch()
        until("every bulk task ends", lambda: self._ended(self._bulk))
        stop.unlink()
        self._sent.clear()
        self._bulk.clear()

    def _send(self, name: str, *arguments: object) -> str:
        task = token_hex(8)
        self._app.send_task(name, (task, *arguments), queue=self._queues[name])
        return task

    def _ended(self, tasks: Sequence[str] | dict[str, float]) -> bool:
        if failed := self._noted("failed", tasks):
            raise LocalError(f"{len(failed)} tasks failed: see the workers' logs in {self._folder}")
        return len(self._noted("ended", tasks)) == len(tasks)

    def _noted(self, what: str, tasks: Sequence[str] | dict[str, float]) -> dict[str, float]:
        """When these did so (ms), of those that did. A task that was sent twice: the first time."""
        found: dict[str, float] = {}
        for line in _lines(self._folder / self._tasks.NOTED):
            if line["what"] == what and line["task"] in tasks:
                found.setdefault(line["task"], line["at"])
        return found


@contextmanager
def celery_lanes(
    stack: LocalStack, records_table: str, bulk_records: int
) -> Iterator[tuple[CeleryLanes, CeleryLanes]]:
    """Celery with two queues, and with one; their workers run until the end of the block.

    bulk_records: of each bulk task. Raises LocalError when Celery is not there."""
    if find_spec("celery") is None:
        raise LocalError("Celery is not installed: `make bench` does it, or install bench.txt")
    port = stack.endpoint.rpartition(":")[2]
    key, secret = CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
    broker = f"sqs://{key}:{secret}@{HOST}:{port}//"
    folder = stack.folder.path / "celery"
    folder.mkdir(exist_ok=True)
    from . import celery_app as tasks  # noqa: PLC0415  not everybody has Celery

    environment = {
        **CREDENTIALS,
        **stack.addresses,
        "PATH": os.environ["PATH"],
        tasks.BROKER: broker,
        tasks.RECORDS: records_table,
        tasks.FOLDER: str(folder),
    }
    small, bulk, one = tasks.SMALL_QUEUE, tasks.BULK_QUEUE, tasks.ONE_QUEUE
    started: list[Process] = []
    try:
        for queue, slots in ((small, SLOTS), (bulk, SLOTS), (one, 2 * SLOTS)):
            # As Fairlane's bulk worker does. What serves both queues can't.
            behind = queue == bulk
            started.append(_worker(queue, slots, environment, folder, behind=behind))
        made = partial(CeleryLanes, folder, broker, bulk_records=bulk_records)
        yield (
            made(small=small, bulk=bulk, slots=SLOTS),
            made(small=one, bulk=one, slots=2 * SLOTS),
        )
    finally:
        processes.stop(started, grace=STOP_GRACE_S)


def _worker(
    queue: str, slots: int, environment: dict[str, str], folder: Path, *, behind: bool
) -> Process:
    command = [sys.executable, "-m", "celery", "-A", "scripts.bench.celery_app", "worker"]
    options = ["-Q", queue, "-c", str(slots), "-n", f"{queue}@bench", "-O", "fair", "-l", "INFO"]
    return processes.start(
        [*command, *options, *QUIETLY],
        env=environment,
        cwd=PACKAGES,
        log=folder / f"{queue}.log",
        behind=behind,
    )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if not file.exists():
        return
    # A line that is still being written has no end yet.
    for line in file.read_text(encoding="utf-8").rpartition("\n")[0].splitlines():
        yield json.loads(line)
