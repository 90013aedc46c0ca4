"""A whole world to run the rules in, in memory and in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..jobs.words.job import Lane
from ..jobs.words.limits import Limits
from ..jobs.words.ports import World
from ..jobs.words.timing import LaneTiming, Timing
from ..operations.registry import all_operations
from .job_store import MemoryStore
from .lane_queue import MemoryLaneQueue
from .payload_store import MemoryPayloadStore
from .record_query import MemoryRecordQuery
from .record_store import MemoryRecordStore
from .runtime import ManualRuntime
from .telemetry import MemoryTelemetry
from .uploads import MemoryUploadStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.operation import Operations

SHORT: Final = Timing(
    small=LaneTiming(heartbeat=1, lease_ttl=4, visibility=12),
    bulk=LaneTiming(heartbeat=2, lease_ttl=8, visibility=12),
    takeover_grace=20,
    function_timeout=2,
    stop_timeout=10,
    longest_chunk=1,
    small_reserve=0.5,
    dispatch_grace=3,
    lost_after=60,
    retry_base=1,
    retry_cap=8,
    rollout=0,
    history=3600,
)
"""Seconds; every relation of Timing.check holds."""


@dataclass(frozen=True, kw_only=True)
class MemoryWorld(World):
    """A World whose parts are known to be the in-memory ones."""

    store: MemoryStore
    records: MemoryRecordStore
    queues: Mapping[Lane, MemoryLaneQueue]
    payloads: MemoryPayloadStore
    runtime: ManualRuntime
    telemetry: MemoryTelemetry
    dead_letters: Mapping[Lane, MemoryLaneQueue]
    query: MemoryRecordQuery
    uploads: MemoryUploadStore


def memory_world(
    *,
    operations: Operations | None = None,
    timing: Timing = SHORT,
    limits: Limits | None = None,
    seed: int = 0,
    due_shards: int = 4,
    tick: int = 0,
) -> MemoryWorld:
    """A fresh, empty world with virtual time. operations: all of the package's when left out.
    tick: ms between two looks at the clock."""
    timing.check()
    runtime = ManualRuntime(seed, tick=tick)
    store = MemoryStore()
    dead = {lane: _dead_letters(runtime, lane, timing) for lane in Lane}
    return MemoryWorld(
        store=store,
        records=MemoryRecordStore(store),
        queues={lane: _queue(runtime, lane, timing, dead[lane]) for lane in Lane},
        dead_letters=dead,
        payloads=MemoryPayloadStore(),
        query=MemoryRecordQuery(store),
        uploads=MemoryUploadStore(),
        runtime=runtime,
        telemetry=MemoryTelemetry(),
        operations=all_operations() if operations is None else operations,
        timing=timing,
        limits=limits or Limits(),
        due_shards=due_shards,
    )


def _queue(
    runtime: ManualRuntime, lane: Lane, timing: Timing, dead_letters: MemoryLaneQueue
) -> MemoryLaneQueue:
    times = timing.lane(lane)
    return MemoryLaneQueue(
        runtime,
        name=lane.value,
        visibility=times.visibility,
        retention=times.queue_retention,
        max_receive_count=times.max_receive_count,
        dead_letters=dead_letters,
    )


def _dead_letters(runtime: ManualRuntime, lane: Lane, timing: Timing) -> MemoryLaneQueue:
    times = timing.lane(lane)
    return MemoryLaneQueue(
        runtime, name=f"{lane}-dlq", visibility=times.visibility, retention=times.dlq_retention
    )
