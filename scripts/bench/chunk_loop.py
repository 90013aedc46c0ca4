"""The chunk loop beside a bare loop that sends the same transactions to the same database."""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median
from typing import Any, Final

from handlers.aws.job_store import DynamoStore
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.chunk_commit import commit_chunk
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.ports import World
from handlers.jobs.words.states import State
from scripts.load import own
from scripts.local.clients import Clients
from scripts.local.errors import LocalError
from scripts.local.steps import Steps
from scripts.ops.deployment import deployment
from scripts.verify.site import stand_still

from .framework import Bench, Measured, compare
from .jobs import TENANT, load, queued

AT_LEAST: Final = 0.85
CHUNK: Final = 96
CHUNKS: Final = 100
ROUNDS: Final = 6


def run(steps: Steps) -> Measured:
    stack = own.up("bench-chunks", steps=steps, workers=0, records=False)
    with own.taken_down(stack, steps=steps):
        stand_still(stack)
        world: World = replace(deployment(None, stack.name).world, sinks={})
        ids = load(world, CHUNK * CHUNKS)
        with steps.step("The chunk loop and a bare loop", 2 * ROUNDS + 2) as advance:

            def fairlane() -> float:
                seconds = _fairlane(world, ids)
                advance(1)
                return len(ids) / seconds

            def bare() -> float:
                seconds = _bare(world, stack.clients, ids)
                advance(1)
                return len(ids) / seconds

            fairlane()  # connections and imports
            bare()
            ours, theirs = compare(fairlane, bare, ROUNDS)
            reading = [len(ids) / _bare(world, stack.clients, ids, reads=True) for _ in range(2)]
    return Measured(
        ratio=median(ours) / median(theirs),
        at_least=AT_LEAST,
        figures={
            "records/s of the chunk loop": median(ours),
            "records/s of a bare loop": median(theirs),
            # One call after another; the chunk loop reads while it commits.
            "records/s of a bare loop that also reads": median(reading),
        },
    )


BENCH: Final = Bench(
    "chunk-loop",
    "Records per second of a bulk job, of a bare loop that sends the same transactions",
    run,
)


def _fairlane(world: World, ids: list[str]) -> float:
    """Seconds of the whole attempt: begin, every chunk with its read, end."""
    job, delivery = queued(world, ids)
    start = time.perf_counter()
    decision = on_message(world, delivery, Worker("bench"))
    seconds = time.perf_counter() - start
    apply_decision(world.queues[Lane.BULK], delivery, decision)
    _must_have_succeeded(world, job)
    return seconds


def _bare(world: World, clients: Clients, ids: list[str], *, reads: bool = False) -> float:
    """Seconds of sending the same chunk transactions, made beforehand, one after another.

    reads: read each chunk's records before it, as Fairlane has to."""
    job, delivery = queued(world, ids)
    transition = begin_attempt(world, job, worker="bench", receipt=delivery.receipt, expired=None)
    began, begun = transition.transaction, transition.after
    world.store.transact("begin", list(began.writes.values()))
    requests, done = _requests(world, begun, ids)
    start = time.perf_counter()
    for number, request in enumerate(requests):
        if reads:
            world.records.read(TENANT, ids[number * CHUNK : (number + 1) * CHUNK])
        clients.dynamodb.transact_write_items(
            TransactItems=request, ClientRequestToken=f"{begun.id}-{number}"
        )
    seconds = time.perf_counter() - start
    end_job(world, done, Ending(State.SUCCEEDED))
    world.queues[Lane.BULK].delete(delivery.receipt)
    _must_have_succeeded(world, job)
    return seconds


def _requests(world: World, job: Job, ids: list[str]) -> tuple[list[list[Any]], Job]:
    """The transactions of every chunk, and the job as it is after the last one."""
    if not isinstance(world.store, DynamoStore):
        raise TypeError(f"a bench of {type(world.store).__name__}")
    requests = []
    for at in range(0, len(ids), CHUNK):
        chunk = ids[at : at + CHUNK]
        records = world.records.read(TENANT, chunk)
        changes = [
            world.records.change(record, {"n": int(str(record.fields["n"])) + 1}, job.id)
            for record in records.values()
        ]
        position = job.position + len(chunk)
        moved = {"position": position, "cursor": position, "succeeded": position}
        after = job.model_copy(update=moved)
        commit = commit_chunk(
            world,
            job,
            after,
            records=changes,
            outcomes=None,
        )
        requests.append(world.store.actions(list(commit.writes.values())))
        job = after
    return requests, job


def _must_have_succeeded(world: World, job: Job) -> None:
    now = read_job(world, job.id)
    if now is None or now.state is not State.SUCCEEDED or now.succeeded != now.total:
        raise LocalError(f"a job of the bench did not succeed: {now}")
