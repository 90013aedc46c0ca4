"""A job made by the real rules on stores in memory, and what of it went where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import World
from handlers.jobs.words.stored_values import size_of
from handlers.operations.registry import all_operations
from handlers.testing.job_store import MemoryStore
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.payload_store import MemoryPayloadStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.runtime import ManualRuntime
from handlers.testing.telemetry import MemoryTelemetry
from infra.settings import PRODUCTION_TIMING

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Key, Write

TENANT = "t" * 36


@dataclass(frozen=True)
class Made:
    """Bytes of what creating a job left in each place."""

    item: int
    """The job's item, by DynamoDB's rules."""
    transaction: int
    """All items of the transaction that creates it."""
    message: int
    """Its body, and the one attribute that goes with it."""
    stored_ids: int
    """The id list in S3; 0 when the item keeps the ids."""


class _Watched(MemoryStore):
    """Remembers the sizes of what each transaction puts."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[dict[Key, int]] = []

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        super().transact(action, writes)
        after = self.get_many([write.key for write in writes])
        keys = {key: {"pk": key.pk, "sk": key.sk} for key in after}
        self.puts.append({key: size_of({**keys[key], **item}) for key, item in after.items()})


def create(content: dict[str, Any], limits: Limits) -> Made:
    """Submit the request and measure. Raises BadRequest."""
    accepted = accept(content, all_operations(), max_ids=limits.max_inline_ids)
    runtime = ManualRuntime(0)
    store, payloads = _Watched(), MemoryPayloadStore()
    queues = {lane: MemoryLaneQueue(runtime, name=lane.value) for lane in Lane}
    world = World(
        store=store,
        records=MemoryRecordStore(store),
        queues=queues,
        payloads=payloads,
        runtime=runtime,
        telemetry=MemoryTelemetry(),
        operations=all_operations(),
        timing=PRODUCTION_TIMING,
        limits=limits,
    )
    created = submit(world, TENANT, accepted)
    if not isinstance(created, Created):
        raise TypeError(f"{created} on an empty store")
    first = store.puts[0]
    [job] = [size for key, size in first.items() if key.sk == "JOB"]
    return Made(
        item=job,
        transaction=sum(first.values()),
        message=_message_bytes(queues[created.job.lane]),
        stored_ids=sum(len(block) for block in _blocks(payloads)),
    )


def _message_bytes(queue: MemoryLaneQueue) -> int:
    [delivery] = queue.receive(1, 0)
    return len(delivery.body.encode())


def _blocks(payloads: MemoryPayloadStore) -> Iterator[bytes]:
    for name in payloads.names():
        yield payloads.read(name, 0, 1 << 31)
