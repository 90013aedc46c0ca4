"""Cases about single records that other programs use all the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.words.errors import Reason, Refused, Why
from handlers.jobs.words.job import Job
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE
from handlers.jobs.words.writes import Table
from handlers.testing.job_store import MemoryStore
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import fill, new_job, now, prices, run_next
from tests.support.results import stored_results

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Write

HOT: Final = "r0017"
RECORDS: Final = 50


class Busy(MemoryStore):
    """A store in which some records have contention, whenever they are written."""

    def __init__(self, below: MemoryStore, why: Why, hot: Callable[[Write], bool]) -> None:
        vars(self).update(vars(below))  # the same items under the same lock
        self._why, self._hot = why, hot

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        reasons = [Reason(self._why) if self._hot(write) else None for write in writes]
        if any(reasons):
            raise Refused(reasons)
        super().transact(action, writes)


def is_record(write: Write) -> bool:
    return write.key.table is Table.RECORDS


def is_hot(write: Write) -> bool:
    return is_record(write) and write.key.sk == HOT


def world_of(why: Why, hot: Callable[[Write], bool], *, chunk: int) -> MemoryWorld:
    world = memory_world(limits=Limits(chunk_size=chunk))
    fill(world, RECORDS)
    store = Busy(world.store, why, hot)
    return replace(world, store=store, records=MemoryRecordStore(store))


def reasons(world: MemoryWorld, job: Job) -> dict[str, str]:
    return {entry["id"]: entry["reason"] for entry in stored_results(world, job.id, "failed")}


@pytest.mark.parametrize("why", [Why.CONFLICT, Why.THROTTLED])
@pytest.mark.parametrize("chunk", [5, 10, RECORDS])
def test_c73_a_hot_record_fails_alone_and_soon(why: Why, chunk: int) -> None:
    world = world_of(why, is_hot, chunk=chunk)
    ids = [f"r{n:04}" for n in range(RECORDS)]
    job = new_job(world, ids)
    began = world.runtime.now()
    run_next(world)
    ended = now(world, job)
    assert (ended.state, ended.succeeded, ended.failed) == (State.SUCCEEDED, RECORDS - 1, 1)
    assert world.runtime.now() - began < MINUTE
    assert reasons(world, job)[HOT].startswith("contended")
    assert prices(world, [id_ for id_ in ids if id_ != HOT]) == {11}
    assert prices(world, [HOT]) == {10}


def test_c73_a_hot_record_on_its_own_fails_too() -> None:
    world = world_of(Why.CONFLICT, is_hot, chunk=10)
    job = new_job(world, [HOT])
    run_next(world)
    assert now(world, job).failed == 1


@pytest.mark.parametrize("why", [Why.CONFLICT, Why.THROTTLED])
def test_c73_contention_that_passes_costs_no_record(why: Why) -> None:
    """Longer than the tries of one transaction, and shorter than those of a chunk."""
    left = iter(range(10))
    world = world_of(why, lambda write: is_hot(write) and next(left, None) is not None, chunk=10)
    job = new_job(world, [f"r{n:04}" for n in range(RECORDS)])
    run_next(world)
    assert (now(world, job).succeeded, now(world, job).failed) == (RECORDS, 0)


def test_c73_a_throttled_table_is_waited_for_and_costs_no_record() -> None:
    """The control: when all records are throttled, none of them is to blame."""
    world = world_of(Why.THROTTLED, is_record, chunk=10)
    job = new_job(world, [f"r{n:04}" for n in range(RECORDS)])
    run_next(world)
    waiting = now(world, job)
    assert (waiting.state, waiting.position, waiting.failed) == (State.QUEUED, 0, 0)
    assert waiting.attempt == 0
