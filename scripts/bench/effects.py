"""A bulk job with a search index beside the same job without one."""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median
from typing import Final

from handlers.jobs.attempt import Worker
from handlers.jobs.model import Lane
from handlers.jobs.outcomes import act
from handlers.jobs.ports import World
from handlers.jobs.reading import read_job
from handlers.jobs.requests import accept
from handlers.jobs.run import on_message
from handlers.jobs.states import State
from handlers.jobs.store import Key, Put, Table
from handlers.jobs.submit import Created, submit
from scripts.load import own
from scripts.local.errors import LocalError
from scripts.local.steps import Steps
from scripts.ops.deployment import deployment
from scripts.verify.site import stand_still

from .framework import Bench, Measured, compare

AT_LEAST: Final = 0.75
"""Of the throughput without effects: what is promised."""
CHUNKS: Final = 20
RECORDS: Final = 96 * CHUNKS
ROUNDS: Final = 6
TENANT: Final = "bench"
LOADED_AT_ONCE: Final = 50


def run(steps: Steps) -> Measured:
    stack = own.up("bench-effects", steps=steps, workers=0, records=False, search=True)
    with own.taken_down(stack, steps=steps):
        stand_still(stack)
        world = deployment(None, stack.name).world
        ids = _load(world)
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


def _load(world: World) -> list[str]:
    ids = [f"record-{number:05}" for number in range(RECORDS)]
    for at in range(0, RECORDS, LOADED_AT_ONCE):
        writes = [
            Put(
                Key(TENANT, id_, Table.RECORDS),
                {"n": 0, "version": 1, "name": f"A record called {id_}", "city": "Somewhere"},
            )
            for id_ in ids[at : at + LOADED_AT_ONCE]
        ]
        world.store.transact("load", writes)
    return ids


def _job(world: World, ids: list[str]) -> float:
    """Seconds from receiving the job's message to its decision, effects included."""
    body = {
        "operation": "adjust_number",
        "subject": "bench",
        "params": {"field": "n", "add": 1},
        "ids": ids,
    }
    created = submit(world, TENANT, accept(body, world.operations, max_ids=len(ids)))
    if not isinstance(created, Created):
        raise LocalError(f"the bench is in its own way: {created}")
    queue = world.queues[Lane.BULK]
    [delivery] = queue.receive(1, 20)
    start = time.perf_counter()
    decision = on_message(world, delivery, Worker("bench"))
    seconds = time.perf_counter() - start
    act(queue, delivery, decision)
    job = read_job(world, created.job.id)
    if job is None or job.state is not State.SUCCEEDED:
        raise LocalError(f"a job of the bench did not succeed: {job}")
    return seconds
