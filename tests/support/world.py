"""A whole world to run the rules in, on the AWS adapters over moto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from handlers.aws.lane_queue import SqsLaneQueue
from handlers.aws.runtime import SystemRuntime
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import World
from handlers.jobs.words.timing import Timing
from handlers.operations.registry import all_operations
from handlers.testing.telemetry import MemoryTelemetry
from handlers.testing.world import SHORT

from . import aws

if TYPE_CHECKING:
    from handlers.jobs.words.operation import Operations
    from handlers.jobs.words.ports import Runtime


@contextmanager
def moto_world(
    *,
    operations: Operations | None = None,
    timing: Timing = SHORT,
    limits: Limits | None = None,
    runtime: Runtime | None = None,
    due_shards: int = 4,
) -> Iterator[World]:
    """A fresh, empty world on the AWS adapters. Its queues live in real time, whatever the
    runtime (the system's when left out); ``aws.clients()`` reach what is behind it."""
    timing.check()
    runtime = runtime or SystemRuntime()
    with aws.moto() as made:
        urls = {lane: aws.create_lane(made.sqs, lane, timing.lane(lane)) for lane in Lane}
        yield World(
            store=aws.job_store(made),
            records=aws.record_store(made, runtime),
            queues={lane: SqsLaneQueue(made.sqs, url) for lane, url in urls.items()},
            payloads=aws.payload_store(made),
            query=aws.table_query(made),
            uploads=aws.upload_store(made),
            runtime=runtime,
            telemetry=MemoryTelemetry(),
            operations=all_operations() if operations is None else operations,
            timing=timing,
            limits=limits or Limits(),
            due_shards=due_shards,
        )
