"""What several benches need: records, and a bulk job over them in this process."""

from __future__ import annotations

from typing import Final

from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.ports import Delivery, World
from handlers.jobs.words.writes import Key, Put, Table
from scripts.local.errors import LocalError

TENANT: Final = "bench"
LOADED_AT_ONCE: Final = 50


def load(world: World, count: int, tenant: str = TENANT) -> list[str]:
    """Write so many records; returns their ids."""
    ids = [record_id(number) for number in range(count)]
    for at in range(0, count, LOADED_AT_ONCE):
        writes = [
            Put(
                Key(tenant, id_, Table.RECORDS),
                {"n": 0, "version": 1, "name": f"A record called {id_}", "city": "Somewhere"},
            )
            for id_ in ids[at : at + LOADED_AT_ONCE]
        ]
        world.store.transact("load", writes)
    return ids


def record_id(number: int) -> str:
    return f"record-{number:05}"


def queued(world: World, ids: list[str]) -> tuple[Job, Delivery]:
    """A bulk job that adds one to each record, and its message, received."""
    job = created(world, ids)
    [delivery] = world.queues[Lane.BULK].receive(1, 20)
    return job, delivery


def created(world: World, ids: list[str], tenant: str = TENANT) -> Job:
    """A bulk job that adds one to each record; its message is in the queue."""
    body = {
        "operation": "adjust_number",
        "subject": "bench",
        "params": {"field": "n", "add": 1},
        "ids": ids,
    }
    made = submit(world, tenant, accept(body, world.operations, max_ids=len(ids)))
    if not isinstance(made, Created):
        raise LocalError(f"the bench is in its own way: {made}")
    return made.job
