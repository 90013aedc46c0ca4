"""AWS calls and capacity units, counted at the clients of the code that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import Delivery, World
from handlers.jobs.words.states import State
from infra.settings import PRODUCTION_TIMING
from scripts.local.errors import LocalError

from .figures import Figure, at_most
from .framework import Bench, Measured
from .handler import ITEMS, api_of, create
from .jobs import TENANT, load, queued
from .place import Place

ROUNDS: Final = 3
CHUNK: Final = 96
CHUNKS: Final = 10
WRITES: Final = frozenset({"TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem"})
SMALL_CALLS: Final = 9
"""Three to create it, six to run it: with the delete of its message."""
BULK_CALLS: Final = (9 + 2 * (CHUNKS - 1)) / (CHUNKS * CHUNK)
"""Of each item: those of a job of one chunk, and two for each further one."""
SMALL_UNITS: Final = 6
BULK_UNITS: Final = 2.7
"""Of each item. A transaction's write of up to 1 KB has two; the rest is the lease, and the job
with its inline ids, written at every checkpoint."""


@dataclass
class Counted:
    calls: int = 0
    written: float = 0
    """Write units, those of indexes too."""


def run(place: Place) -> Measured:
    api, here = api_of(place), place.deployment()
    # Patient: a heartbeat would be counted on a slow machine, and not on a fast one.
    world: World = replace(here.world, sinks={}, timing=PRODUCTION_TIMING)
    ids = load(world, CHUNK * CHUNKS)
    clients = [*_clients_of(world), *_clients_of(api.world(api.SERVICE))]
    small, bulk = [], []
    rounds = place.rounds(ROUNDS)
    with place.steps.step("Counting calls", 2 * rounds) as advance:
        for _ in range(rounds):
            small.append(_small_job(world, api, clients))
            advance(1)
            bulk.append(_bulk_job(world, ids, clients))
            advance(1)
    return Measured(
        figures=(
            _figure("AWS calls of a small job of 10", [c.calls for c in small], SMALL_CALLS),
            _figure(
                "AWS calls per item of a bulk job of 960",
                [c.calls / len(ids) for c in bulk],
                BULK_CALLS,
            ),
            _figure(
                "write units per item of a small job",
                [c.written / ITEMS for c in small],
                SMALL_UNITS,
            ),
            _figure(
                "write units per item of a bulk job",
                [c.written / len(ids) for c in bulk],
                BULK_UNITS,
            ),
        ),
        facts={
            "write units of a small job of 10": small[0].written,
            "AWS calls of a bulk job of 960": bulk[0].calls,
            "write units of it": bulk[0].written,
        },
    )


BENCH: Final = Bench("calls", "AWS calls and write units of jobs and of their items", run)


def _clients_of(world: Any) -> tuple[Any, Any]:
    """The SDK's, of the database and of the queues."""
    return world.store._client, world.queues[Lane.SMALL]._client  # noqa: SLF001  nobody else asks


def _figure(what: str, counts: Sequence[float], most: float) -> Figure:
    return Figure.of(what, counts, bound=at_most(most), counted=True)


def _small_job(world: World, api: Any, clients: Sequence[Any]) -> Counted:
    """Created by the API, run as the small lane does. The delete of its message is the event
    source mapping's call; here it is ours."""
    with counting(clients) as counted:
        _, job_id = create(api, TENANT)
    [delivery] = world.queues[Lane.SMALL].receive(1, 20)
    with counting(clients, counted):
        _serve(world, delivery, Lane.SMALL)
    _must_have_succeeded(world, job_id)
    return counted


def _bulk_job(world: World, ids: list[str], clients: Sequence[Any]) -> Counted:
    with counting(clients) as counted:
        job, delivery = queued(world, ids)
        counted.calls -= 1  # the receive: a worker's one long poll, whatever comes of it
        # It met a free slot, however slow the machine: one that waited is asked about turns.
        _serve(world, replace(delivery, sent_at=world.runtime.now()), Lane.BULK)
    _must_have_succeeded(world, job.id)
    return counted


def _serve(world: World, delivery: Delivery, lane: Lane) -> None:
    apply_decision(world.queues[lane], delivery, on_message(world, delivery, Worker("bench")))


def _must_have_succeeded(world: World, job_id: str) -> None:
    job = read_job(world, job_id)
    if job is None or job.state is not State.SUCCEEDED or job.succeeded != job.total:
        raise LocalError(f"job {job_id} of the bench did not succeed: {job and job.state}")


@contextmanager
def counting(clients: Sequence[Any], into: Counted | None = None) -> Iterator[Counted]:
    """What these clients call meanwhile. DynamoDB is asked for the units of each call."""
    counted = into or Counted()

    def ask(params: dict[str, Any], model: Any, **_: object) -> None:
        if "ReturnConsumedCapacity" in model.input_shape.members:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: dict[str, Any], model: Any, **_: object) -> None:
        counted.calls += 1
        if model.name in WRITES:
            units = parsed["ConsumedCapacity"]
            tables = units if isinstance(units, list) else [units]
            counted.written += sum(table["CapacityUnits"] for table in tables)

    hooks = (("provide-client-params.*", ask), ("after-call.*", note))
    for client in clients:
        for event, hook in hooks:
            client.meta.events.register(event, hook)
    try:
        yield counted
    finally:
        for client in clients:
            for event, hook in hooks:
                client.meta.events.unregister(event, hook)
