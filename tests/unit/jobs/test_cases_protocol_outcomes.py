"""Cases about what an operation returns, raises or does for one record of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import MAX_REASON
from handlers.jobs.words.operation import Change, Fail, Operation, Skip, Touch
from handlers.jobs.words.states import State
from handlers.operations.parameters import Parameters
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, fill, new_job, now, run_next
from tests.support.results import stored_results

BAD: Final = "r0017"
RECORDS: Final = 50


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raises(error: BaseException) -> Any:
    raise error


def misbehaving(does: Callable[[], Any]) -> tuple[MemoryWorld, Operation]:
    """An operation that adds 1 to the price, except for one record."""

    def apply(record: Any, _: Any) -> Any:
        return does() if record["price"] < 0 else Change({"price": record["price"] + 1})

    operation = Operation("misbehaves", Parameters, apply, lambda _: frozenset({"price"}))
    world = memory_world(operations={"misbehaves": operation})
    fill(world, RECORDS)
    world.records.load(TENANT, {BAD: {"price": -1, "version": 1}})
    return world, operation


@pytest.mark.parametrize(
    "does",
    [
        pytest.param(lambda: None, id="nothing"),
        pytest.param(lambda: Change, id="a class"),
        pytest.param(lambda: 0.5, id="a number"),
        pytest.param(lambda: Change(None), id="a change without fields"),  # type: ignore[arg-type]
        pytest.param(lambda: Change({"price": 0.5}), id="a float"),  # type: ignore[dict-item]
        pytest.param(lambda: Change({"price": {1, 2}}), id="a set"),  # type: ignore[dict-item]
        pytest.param(lambda: Change({"price": b"1"}), id="bytes"),
        pytest.param(lambda: Change({1: 1}), id="a field that is no text"),  # type: ignore[dict-item]
        pytest.param(lambda: Change({"version": 7}), id="the version"),
        pytest.param(lambda: Change({"a": "x" * 500_000}), id="more than an item holds"),
        pytest.param(lambda: Fail(None), id="a reason that is nothing"),  # type: ignore[arg-type]
        pytest.param(lambda: Fail({"why": 1}), id="a reason that is no text"),  # type: ignore[arg-type]
        pytest.param(lambda: Skip(7), id="a skip for a number"),  # type: ignore[arg-type]
        pytest.param(lambda: Fail("half \ud800 pair"), id="a reason with half a pair"),
        pytest.param(lambda: Fail(""), id="an empty reason"),
        pytest.param(lambda: Fail("x" * 1_000_000), id="a long reason"),
        pytest.param(lambda: raises(ValueError("half \udfff pair")), id="raised with half a pair"),
        pytest.param(lambda: raises(Unspeakable()), id="raised without words"),
        pytest.param(lambda: raises(RecursionError()), id="too deep"),
        pytest.param(lambda: raises(SystemExit(1)), id="an exit"),
        pytest.param(lambda: raises(StopIteration()), id="a stop"),
    ],
)
@pytest.mark.parametrize("lane", Lane)
def test_c72_one_bad_outcome_is_its_records_alone(does: Callable[[], Any], lane: Lane) -> None:
    world, operation = misbehaving(does)
    ids = [f"r{n:04}" for n in range(RECORDS)]
    if lane is Lane.BULK:
        ids += [f"missing-{n:04}" for n in range(200)]
    job = new_job(world, ids, operation=operation.name, params={})
    run_next(world, lane)
    ended = now(world, job)
    assert ended.state is State.SUCCEEDED
    assert ended.succeeded == RECORDS - 1
    assert ended.failed + ended.skipped == len(ids) - ended.succeeded
    assert changed(world) == RECORDS - 1
    [reason] = reasons(world, ended.id)
    assert reason.strip()
    assert len(reason) <= MAX_REASON
    reason.encode()


def changed(world: MemoryWorld) -> int:
    found = world.records.read(TENANT, [f"r{n:04}" for n in range(RECORDS)])
    return sum(record.version == 2 for record in found.values())


def reasons(world: MemoryWorld, job_id: str) -> list[str]:
    return [
        entry["reason"]
        for outcome in ("failed", "skipped")
        for entry in stored_results(world, job_id, outcome)
        if entry["id"] == BAD
    ]


def test_c72_a_record_that_is_touched_counts_and_stays() -> None:
    """The control: an outcome that changes nothing is no failure."""
    world, operation = misbehaving(Touch)
    job = new_job(world, [f"r{n:04}" for n in range(RECORDS)], operation=operation.name, params={})
    run_next(world, Lane.SMALL)
    assert now(world, job).succeeded == RECORDS
    assert changed(world) == RECORDS - 1
