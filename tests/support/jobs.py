"""Jobs in a memory world as a client and a worker see them: create, fill, receive, run, read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, SubmitResult, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job, read_lease
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE
from handlers.jobs.words.writes import Update
from handlers.testing.world import MemoryWorld, memory_world

if TYPE_CHECKING:
    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.storage.transaction import Transaction
    from handlers.jobs.words.job import Lease
    from handlers.jobs.words.ports import Delivery, World

TENANT = "acme"
CHUNK = 10


def new_job(world: MemoryWorld, ids: list[str], subject: str = "products", **more: object) -> Job:
    outcome = create(world, ids, subject, **more)
    assert isinstance(outcome, Created)
    return outcome.job


def create(
    world: MemoryWorld, ids: list[str], subject: str = "products", **more: object
) -> SubmitResult:
    body = {
        "operation": "adjust_number",
        "subject": subject,
        "params": {"field": "price", "add": 1},
        "ids": ids,
        **more,
    }
    request = accept(parse(json.dumps(body)), world.operations, max_ids=100_000)
    return submit(world, TENANT, request)


def fill(world: MemoryWorld, count: int) -> list[str]:
    ids = [f"r{i:04}" for i in range(count)]
    world.records.load(TENANT, {id_: {"price": 10, "version": 1} for id_ in ids})
    return ids


def receive(world: MemoryWorld, lane: Lane) -> Delivery:
    [delivery] = world.queues[lane].receive(1, 0)
    return delivery


def run_next(world: MemoryWorld, lane: Lane = Lane.SMALL, **worker: object) -> Decision:
    """Receive one message, run it, and do with the message what was decided."""
    delivery = receive(world, lane)
    decision = on_message(world, delivery, Worker("w1", **worker))  # type: ignore[arg-type]
    apply_decision(world.queues[lane], delivery, decision)
    return decision


def use_up(world: World, job: Job) -> None:
    """The job has no attempts left: its next delivery fails it, with every record still to do."""
    spent = world.timing.lane(job.lane).max_attempts
    world.store.transact("spent", [Update(control_table.job_key(job.id), set={"attempt": spent})])


def now(world: MemoryWorld, job: Job) -> Job:
    found = read_job(world, job.id)
    assert found is not None
    return found


def prices(world: MemoryWorld, ids: list[str]) -> set[object]:
    found: dict[str, Record] = {}
    for at in range(0, len(ids), 100):
        found |= world.records.read(TENANT, ids[at : at + 100])
    return {record.fields["price"] for record in found.values()}


def write(world: MemoryWorld, transaction: Transaction) -> None:
    world.store.transact(transaction.action, list(transaction.writes.values()))


def chunked() -> MemoryWorld:
    return memory_world(limits=Limits(chunk_size=CHUNK))


def lease_of(world: MemoryWorld, job: Job) -> Lease:
    lease = read_lease(world, job)
    assert lease is not None
    return lease


def free(world: MemoryWorld, job: Job) -> bool:
    """Nothing holds the subject, the slot or a message any more."""
    slots = world.store.get(control_table.slots_key(TENANT, job.lane)) or {}
    messages = any(queue.snapshot() for queue in world.queues.values())
    return lease_of(world, job).job_id is None and not slots.get("in_flight") and not messages


def minutes(world: MemoryWorld, limit: int = 60) -> None:
    """Recovery runs every minute and a worker takes what there is, until nothing is left."""
    for _ in range(limit):
        Recovery(world).run()
        for lane in Lane:
            for delivery in world.queues[lane].receive(10, 0):
                decision = on_message(world, delivery, Worker("minutes"))
                apply_decision(world.queues[lane], delivery, decision)
        world.runtime.sleep(MINUTE)


def begin(world: MemoryWorld, job: Job, worker: str = "w1") -> Job:
    """A worker begins an attempt, and is not heard of again; of a running job once its lease has
    expired."""
    lease = read_lease(world, job) if job.state is State.RUNNING else None
    transition = begin_attempt(world, job, worker=worker, receipt="r", expired=lease)
    write(world, transition.transaction)
    return transition.after
