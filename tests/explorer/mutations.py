"""The mutations that the explorer finds: those of the simulation that fit its size, and its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from handlers.jobs.execution.delivery import _DeliveryCheck
from handlers.jobs.storage import outbox
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.conditions import JOB, LEASE
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.writes import Equals
from tests.simulation.mutating import registry, rewriting, without
from tests.simulation.mutations import MUTATIONS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.writes import Write
    from tests.simulation.mutating import Mutation

ROUTE: Final = _DeliveryCheck._route
OWN, mutation = registry()


@mutation
def a_job_of_another_lane_is_taken() -> AbstractContextManager[object]:
    """C71: the message of the lane that the job has left is treated like one of its own lane."""

    def route(self: _DeliveryCheck, job: Job) -> Any:
        pointer = replace(self.pointer, lane=job.lane)
        return ROUTE(replace(self, pointer=pointer), job)

    return patch.object(_DeliveryCheck, "_route", route)


def a_living_workers_job_is_begun_again() -> AbstractContextManager[object]:
    """A redelivery does not ask whether the lease has expired."""

    def begin(self: _DeliveryCheck, job: Job) -> Any:
        return self._begin(job, read_lease(self.world, job))

    return patch.object(_DeliveryCheck, "_redelivered", begin)


OWN["a living worker's job is begun again"] = a_living_workers_job_is_begun_again


@mutation
def recovery_takes_a_row_that_another_run_has() -> AbstractContextManager[object]:
    return patch.object(outbox, "as_read", lambda *_: ())


# --- one of two guards ------------------------------------------------------------------------


def begins_whatever(*conditions: tuple[str, str]) -> Mutation:
    """An attempt begins without these conditions: (role of the write, attribute)."""

    def change(writes: dict[str, Write]) -> None:
        for role, name in conditions:
            without(writes, role, name)

    return lambda: rewriting(begin_attempt, change)


OWN |= {
    "an attempt begins whatever the lease's fence": begins_whatever((LEASE, "fence")),
    "an attempt begins whatever the job's": begins_whatever((JOB, "fence"), (JOB, "attempt")),
    "an attempt begins whatever either fence": begins_whatever((LEASE, "fence"), (JOB, "fence")),
}


@mutation
def a_record_is_written_whatever_its_mark() -> AbstractContextManager[object]:
    def untouched(self: RecordSchema, record: Record, _job_id: str) -> Any:
        return (Equals(self.version, record.version),)

    return patch.object(RecordSchema, "_untouched", untouched)


@mutation
def a_record_is_written_whatever_it_is() -> AbstractContextManager[object]:
    return patch.object(RecordSchema, "_untouched", lambda *_: ())


ALL: Final[dict[str, Mutation]] = {**MUTATIONS, **OWN}
