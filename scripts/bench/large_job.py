"""Memory and time per item of jobs from a thousand ids to half a million.

The whole way: the ids are uploaded, a worker process prepares the list and walks it, chunk by
chunk, on the local AWS. The ids have no record and the operation changes none, so that what grows
with the job is what the job itself needs, and the bench ends within minutes.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from fairlane_client import Client, NewJob
from fairlane_client.requests import NewUpload
from handlers.jobs.words.states import State
from scripts.load.ledger import Ledger
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.stack import LocalStack

from .figures import Figure, at_most
from .framework import Bench, Measured
from .place import Place

TENANT: Final = "large"
FEW: Final = 1000
MANY: Final = 100_000
MOST: Final = 500_000
ORDER: Final = (FEW, MANY, FEW, MOST, FEW)
"""Each larger one is between two of the smallest."""
SHORT_ORDER: Final = (FEW, 5 * FEW, FEW)
MEMORY_AT_MOST: Final = 1.5
TIME_AT_MOST: Final = 1.25
LOOK_S: Final = 0.05
POLL_S: Final = 0.5
WITHIN_S: Final = 1800
MIB: Final = 1024**2


@dataclass(frozen=True)
class Ran:
    count: int
    peak: int
    """Bytes: the most the worker process had, from its start on."""
    ms: int
    """From the job's start to its end."""

    @property
    def ms_each(self) -> float:
        return self.ms / self.count


def run(place: Place) -> Measured:
    order = SHORT_ORDER if place.short else ORDER
    stack = place.quiet()
    with place.steps.step("Jobs of more and more ids", sum(order)) as advance:
        ran = []
        for number, count in enumerate(order):
            ran.append(_job(stack, f"large/{number}", count))
            advance(count)
    return Measured(figures=tuple(_figures(ran)), facts=_facts(ran))


BENCH: Final = Bench(
    "large-job", "Memory and time per item of a worker as its job's ids get more", run
)


def _figures(ran: list[Ran]) -> Iterator[Figure]:
    """Each larger job is between two of the smallest, and compared with both."""
    larger = range(1, len(ran), 2)
    for count in sorted({ran[at].count for at in larger}):
        pairs = [
            (ran[at], ran[beside])
            for at in larger
            for beside in (at - 1, at + 1)
            if ran[at].count == count
        ]
        yield _figure("peak memory", pairs, lambda each: each.peak, MEMORY_AT_MOST)
        yield _figure("time per item", pairs, lambda each: each.ms_each, TIME_AT_MOST)
    most = max(ran, key=lambda each: each.count)
    many = [each for each in ran if FEW < each.count < most.count]
    if many:
        pairs = [(most, each) for each in many]
        yield _figure("time per item", pairs, lambda each: each.ms_each, TIME_AT_MOST)


def _figure(
    what: str, pairs: list[tuple[Ran, Ran]], of: Callable[[Ran], float], most: float
) -> Figure:
    one, other = pairs[0]
    return Figure.of(
        f"{what}: {one.count:,} ids ÷ {other.count:,}",
        [of(one) for one, _ in pairs],
        [of(other) for _, other in pairs],
        bound=at_most(most),
    )


def _facts(ran: list[Ran]) -> dict[str, float]:
    facts = {}
    for count in sorted({each.count for each in ran}):
        jobs = [each for each in ran if each.count == count]
        facts[f"µs per item at {count:,}"] = median(job.ms_each for job in jobs) * 1000
        facts[f"MiB at {count:,}"] = median(job.peak for job in jobs) / MIB
    return facts


def _job(stack: LocalStack, subject: str, count: int) -> Ran:
    """Submit it, let a new worker run it, and stop the worker."""
    client = Client(stack.api.url, stack.issuer.token(TENANT))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ids.jsonl")
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(f'nothing-{n:09}')}\n" for n in range(count))
        upload = client.upload(file, NewUpload(format="jsonl"), sent=lambda _: None)
    job = client.submit(NewJob(operation="reindex", subject=subject, upload_id=upload))
    [worker] = stack.workers.start(1)
    try:
        with _watched(worker) as peak:
            ended = client.wait(job.id, poll=POLL_S, timeout=WITHIN_S)
    finally:
        stack.workers.stop()
    row = Ledger(stack).jobs()[job.id]
    if ended.state != State.SUCCEEDED or row.succeeded != count or row.finished_at is None:
        raise LocalError(f"a job of the bench did not succeed: {ended}")
    return Ran(count, max(peak), row.finished_at - (row.started_at or 0))


@contextmanager
def _watched(process: Process) -> Iterator[list[int]]:
    """Its memory (bytes), looked at again and again while the block runs."""
    found, seen, done = process.find(), [0], threading.Event()

    def watch() -> None:
        while found is not None and not done.wait(LOOK_S):
            with suppress(psutil.NoSuchProcess):
                seen[0] = max(seen[0], found.memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
