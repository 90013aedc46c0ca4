"""Ports with one call taken over, for what a scenario makes fail or leaves out on purpose."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from handlers.aws.job_store import DynamoStore
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.aws.payload_store import S3PayloadStore
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job
from handlers.jobs.words.operation import Operation, Operations
from handlers.jobs.words.ports import Delivery, Store, World
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.writes import Write
from scripts.local.errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

COMMIT: Final = "commit_chunk"
HELD_S: Final = 600
"""How long a chunk is held at the most; far more than any scenario takes."""

Carry: TypeAlias = Callable[[Store, str, Sequence[Write]], None]
"""(the store itself, action, writes): what becomes of a transaction."""


class WatchedQueue(SqsLaneQueue):
    """Notes what is done with its messages."""

    def __init__(self, client: SQSClient, url: str) -> None:
        super().__init__(client, url)
        self.received: list[Delivery] = []
        self.extended: list[str] = []
        """Receipts of the messages that were hidden for longer."""
        self.deleted: list[str] = []
        """Receipts of the messages that were deleted."""

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        taken = super().receive(limit, wait_seconds)
        self.received += taken
        return taken

    def set_visibility(self, receipt: str, seconds: int) -> None:
        super().set_visibility(receipt, seconds)
        if seconds:
            self.extended.append(receipt)

    def delete(self, receipt: str) -> None:
        super().delete(receipt)
        self.deleted.append(receipt)

    def of(self, job: Job) -> list[Delivery]:
        """The deliveries of the job's messages."""
        return [delivery for delivery in tuple(self.received) if job.id in delivery.body]

    def extensions_of(self, job: Job) -> int:
        receipts = {delivery.receipt for delivery in self.of(job)}
        return sum(receipt in receipts for receipt in tuple(self.extended))


class TappedStore(DynamoStore):
    """Its transactions go through ``carry``."""

    def __init__(
        self,
        client: DynamoDBClient,
        carry: Carry,
        *,
        control_table: str,
        records_table: str,
        schema: RecordSchema,
    ) -> None:
        super().__init__(
            client, control_table=control_table, records_table=records_table, schema=schema
        )
        self._below = DynamoStore(
            client, control_table=control_table, records_table=records_table, schema=schema
        )
        self._carry = carry

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        self._carry(self._below, action, writes)


def held(carry: Carry, after: int, until: Event) -> Carry:
    """The chunks after so many wait, just before they are committed, until the event is set: what
    a scenario does in the middle of a job it does there, however fast the job is."""
    done, lock = 0, Lock()

    def carried(store: Store, action: str, writes: Sequence[Write]) -> None:
        nonlocal done
        if action == COMMIT:
            with lock:
                done += 1
                waits = done > after
            if waits and not until.wait(HELD_S):
                raise LocalError(f"a chunk was held for {HELD_S} s")
        carry(store, action, writes)

    return carried


def carry_on(store: Store, action: str, writes: Sequence[Write]) -> None:
    """What becomes of a transaction usually."""
    store.transact(action, writes)


class TappedPayloads(S3PayloadStore):
    """Asks ``before`` ahead of each deletion; it may raise."""

    def __init__(self, client: S3Client, bucket: str, before: Callable[[], None]) -> None:
        super().__init__(client, bucket)
        self._before = before

    def delete(self, name: str) -> None:
        self._before()
        super().delete(name)


class Down:
    """A dependency that does not answer the first ``times`` calls."""

    def __init__(self, times: int) -> None:
        self._left = times
        self._lock = Lock()

    def __call__(self) -> None:
        """Raises Transient while it is down."""
        with self._lock:
            self._left -= 1
            down = self._left >= 0
        if down:
            raise Transient("down")

    @property
    def over(self) -> bool:
        """It has been asked as often as it would not answer."""
        return self._left <= 0


def slow(world: World, seconds: float) -> World:
    """The same world, where each record takes so long."""
    made: dict[str, Operation] = {
        name: replace(operation, apply=_slow(operation.apply, seconds))
        for name, operation in world.operations.items()
    }
    operations: Operations = made
    return replace(world, operations=operations)


def _slow(apply: Callable[[Mapping[str, Any], Any], Any], seconds: float) -> Callable[..., Any]:
    def slowly(fields: Mapping[str, Any], parameters: Any) -> Any:
        time.sleep(seconds)
        return apply(fields, parameters)

    return slowly
