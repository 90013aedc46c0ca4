"""What becomes of each record of a chunk before anything is written."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Self

import pytest
from pydantic import model_validator

from handlers.jobs.execution.planning import _reason, check_understood, work_of
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.words.errors import JobFailed
from handlers.jobs.words.job import EndReason, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Change, Operation, Skip
from handlers.jobs.words.states import State
from handlers.operations.parameters import Parameters
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, fill, new_job, now, run_next
from tests.support.results import stored_results
from tests.support.tables import PRICED, Priced, price_list, upload, wanted


def test_records_that_fail_are_reported_and_their_neighbours_done() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 30)
    world.records.load(TENANT, {"r0017": {"price": "not a number", "version": 1}})
    job = new_job(world, [*ids, "missing"])
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.succeeded, ended.failed, ended.skipped) == (29, 1, 1)
    assert [each["id"] for each in stored_results(world, job.id, "failed")] == ["r0017"]
    assert [each["id"] for each in stored_results(world, job.id, "skipped")] == ["missing"]


@pytest.mark.parametrize(
    "returned",
    [
        None,
        {"price": 1},
        Change([1]),  # type: ignore[arg-type]  # what a mistaken operation may do
        Change({"price": 0.5}),  # type: ignore[dict-item]
        Change({"price": [0.5]}),  # type: ignore[list-item]
        Change({"price": b"1"}),
        Change({"price": Decimal("1." + "1" * 39)}),
        Change({"price": "\ud800"}),
        Change({"": 1}),
    ],
    ids=repr,
)
def test_what_no_operation_may_return_fails_its_record_alone(returned: Any) -> None:
    """A float used to fail the attempt, and the job was tried again until it gave up; None used to
    be counted as nothing at all."""
    mistaken = Operation(
        "mistaken",
        Parameters,
        lambda record, _: returned if record["price"] == 11 else Skip("fine"),
        lambda _: frozenset({"price"}),
    )
    world = memory_world(operations={"mistaken": mistaken})
    fill(world, 2)
    world.records.load(TENANT, {"r0001": {"price": 11, "version": 1}})
    job = new_job(world, ["r0000", "r0001"], operation="mistaken", params={})
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.state, ended.failed, ended.skipped) == (State.SUCCEEDED, 1, 1)


def test_a_job_of_an_unknown_operation_is_not_understood() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1)).model_copy(update={"operation": "unknown"})
    for asked in (work_of, check_understood):
        with pytest.raises(JobFailed) as raised:
            asked(world, job)
        assert raised.value.reason == EndReason.UNKNOWN_OPERATION


def test_a_job_whose_parameters_are_checked_against_a_table_is_not_understood() -> None:
    """A newer version of the operation came with such a check."""
    known = memory_world(operations={"priced": PRICED})
    request = wanted(known, upload(known, price_list()), 1)
    made = submit(known, TENANT, request)
    assert isinstance(made, Created)
    world = memory_world(operations={"priced": replace(PRICED, parameters=LooksInto)})
    with pytest.raises(JobFailed, match="looks into a lookup table") as raised:
        check_understood(world, made.job)
    assert raised.value.reason == EndReason.BAD_PARAMETERS


class LooksInto(Priced):
    @model_validator(mode="after")
    def _has_rows(self) -> Self:
        assert len(self.prices)
        return self


@pytest.mark.parametrize("reason", [7, None, b"bytes"])
def test_a_reason_that_is_no_text_is_told_by_its_type(reason: object) -> None:
    with pytest.raises(TypeError, match=type(reason).__name__):
        _reason(reason)
