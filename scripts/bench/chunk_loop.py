"""The chunk loop beside a bare loop with the same reads and writes on the same database."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import boto3

from handlers.aws.job_store import DynamoStore
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.governor import Governor
from handlers.jobs.execution.rate_limiter import RateLimiter
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.chunk_commit import commit_chunk
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.pace import PaceSettings
from handlers.jobs.words.ports import World
from handlers.jobs.words.states import State
from handlers.settings import WorkSettings
from scripts.local.errors import LocalError

from .figures import Figure, at_least
from .framework import Bench, Measured
from .jobs import TENANT, load, queued
from .place import Place
from .quiet import quiet_pairs

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

AT_LEAST: Final = 0.95
PACED: Final = 0.97
"""Of the throughput without a governor, where nobody else needs the database."""
CHUNK: Final = 96
CHUNKS: Final = 80
"""So many that an attempt's beginning and end are a small part of it."""
ROUNDS: Final = 6
PACED_ROUNDS: Final = 14
"""The governor takes a hundredth, and a pair's ratio goes up and down by three."""
BARE: Final = Worker("bench")
"""It has no governor and no rate limiter."""


def run(place: Place) -> Measured:
    here = place.deployment()
    world: World = replace(here.world, sinks={})
    bare_client = Bare(boto3.client("dynamodb"), here.settings)
    rounds, chunks = place.rounds(ROUNDS, 2), place.rounds(CHUNKS, 10)
    with place.steps.step("Loading records"):
        ids = load(world, CHUNK * chunks)
    with place.steps.step("The chunk loop and a bare loop", 2 * rounds + 2) as advance:

        def fairlane() -> float:
            seconds = _fairlane(world, ids)
            advance(1)
            return len(ids) / seconds

        def bare() -> float:
            seconds = _bare(world, bare_client, ids)
            advance(1)
            return len(ids) / seconds

        fairlane()  # connections and imports
        bare()
        loops = quiet_pairs(fairlane, bare, rounds)
    rounds = place.rounds(PACED_ROUNDS, 2)
    with place.steps.step("With a governor and rate limiter, and without", 2 * rounds) as advance:

        def paced() -> float:
            advance(1)
            return len(ids) / _fairlane(world, ids, worker_with_pace(world))

        def free() -> float:
            advance(1)
            return len(ids) / _fairlane(world, ids)

        paces = quiet_pairs(paced, free, rounds)
    figure = Figure.of(
        "records/s of a bulk job ÷ a bare loop",
        loops.ones,
        loops.others,
        bound=at_least(AT_LEAST),
        quiet=loops.quiet,
    )
    governed = Figure.of(
        "records/s with a governor ÷ without, on an idle database",
        paces.ones,
        paces.others,
        bound=at_least(PACED),
        quiet=paces.quiet,
    )
    return Measured(
        figures=(figure, governed),
        facts={
            "records/s of a bulk job": median(loops.ones),
            "records/s of a bare loop": median(loops.others),
        },
    )


BENCH: Final = Bench(
    "chunk-loop",
    "A whole attempt of a bulk job beside a bare loop that reads and writes the same",
    run,
)


@dataclass(frozen=True)
class Bare:
    """A plain client, and where the records are."""

    dynamodb: DynamoDBClient
    settings: WorkSettings

    def read_of(self, ids: list[str]) -> dict[str, Any]:
        """The request for these records."""
        tenant, id_key = self.settings.records_tenant_key, self.settings.records_id_key
        keys = [{tenant: {"S": TENANT}, id_key: {"S": id_}} for id_ in ids]
        return {self.settings.records_table: {"Keys": keys, "ConsistentRead": True}}


def worker_with_pace(world: World) -> Worker:
    """A worker as a slot of the bulk lane has it."""
    governor = Governor(PaceSettings(), world.runtime)
    return Worker("bench", governor=governor, limiter=RateLimiter(world.runtime))


def _fairlane(world: World, ids: list[str], worker: Worker = BARE) -> float:
    """Seconds of the whole attempt: begin, every chunk with its read, end."""
    job, delivery = queued(world, ids)
    start = time.perf_counter()
    decision = on_message(world, delivery, worker)
    seconds = time.perf_counter() - start
    apply_decision(world.queues[Lane.BULK], delivery, decision)
    _must_have_succeeded(world, job)
    return seconds


def _bare(world: World, client: Bare, ids: list[str]) -> float:
    """Seconds of reading each chunk's records and sending its transaction, made beforehand, one
    after another: no begin and no end, no plan, no encoding, no lease to keep."""
    job, delivery = queued(world, ids)
    transition = begin_attempt(world, job, worker="bench", receipt=delivery.receipt, expired=None)
    began, begun = transition.transaction, transition.after
    world.store.transact("begin", list(began.writes.values()))
    requests, done = _requests(world, begun, ids)
    reads = [client.read_of(ids[at : at + CHUNK]) for at in range(0, len(ids), CHUNK)]
    start = time.perf_counter()
    for number, (read, request) in enumerate(zip(reads, requests, strict=True)):
        client.dynamodb.batch_get_item(RequestItems=read)
        client.dynamodb.transact_write_items(
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
            outcomes={},
        )
        requests.append(world.store.actions(list(commit.writes.values())))
        job = after
    return requests, job


def _must_have_succeeded(world: World, job: Job) -> None:
    now = read_job(world, job.id)
    if now is None or now.state is not State.SUCCEEDED or now.succeeded != now.total:
        raise LocalError(f"a job of the bench did not succeed: {now}")
