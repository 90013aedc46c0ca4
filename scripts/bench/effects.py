"""A bulk job with a search index beside the same job without one."""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median
from typing import Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import World
from handlers.jobs.words.states import State
from scripts.load import own
from scripts.local.errors import LocalError
from scripts.local.steps import Steps
from scripts.ops.deployment import deployment
from scripts.verify.site import stand_still

from .framework import Bench, Measured, compare
from .jobs import load, queued

AT_LEAST: Final = 0.75
"""Of the throughput without effects: what is promised."""
CHUNKS: Final = 20
RECORDS: Final = 96 * CHUNKS
ROUNDS: Final = 6


def run(steps: Steps) -> Measured:
    stack = own.up("bench-effects", steps=steps, workers=0, records=False, search=True)
    with own.taken_down(stack, steps=steps):
        stand_still(stack)
        world = deployment(None, stack.name).world
        ids = load(world, RECORDS)
        plain: World = replace(world, sinks={})
        with steps.step("Jobs with and without effects", 2 * ROUNDS + 2) as advance:

            def rate(of: World) -> float:
                seconds = _job(of, ids)
                advance(1)
                return len(ids) / seconds

            rate(world)  # connections, imports, and documents to be written over
            rate(plain)
            without, with_ = compare(lambda: rate(plain), lambda: rate(world), ROUNDS)
    return Measured(
        ratio=median(with_) / median(without),
        at_least=AT_LEAST,
        figures={
            "records/s without effects": median(without),
            "records/s with effects": median(with_),
        },
    )


BENCH: Final = Bench(
    "effects", "Throughput of a bulk job with a search index, of that without one", run
)


def _job(world: World, ids: list[str]) -> float:
    """Seconds from receiving the job's message to its decision, effects included."""
    job, delivery = queued(world, ids)
    queue = world.queues[Lane.BULK]
    start = time.perf_counter()
    decision = on_message(world, delivery, Worker("bench"))
    seconds = time.perf_counter() - start
    apply_decision(queue, delivery, decision)
    now = read_job(world, job.id)
    if now is None or now.state is not State.SUCCEEDED:
        raise LocalError(f"a job of the bench did not succeed: {now}")
    return seconds
