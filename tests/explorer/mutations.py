"""The mutations that the explorer finds: those of the simulation that fit its size, and its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from handlers.jobs.execution.delivery import _DeliveryCheck
from tests.simulation.mutations import MUTATIONS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from handlers.jobs.words.job import Job
    from tests.simulation.mutating import Mutation

ROUTE: Final = _DeliveryCheck._route


def a_job_of_another_lane_is_taken() -> AbstractContextManager[object]:
    """C71: the message of the lane that the job has left is treated like one of its own lane."""

    def route(self: _DeliveryCheck, job: Job) -> Any:
        pointer = replace(self.pointer, lane=job.lane)
        return ROUTE(replace(self, pointer=pointer), job)

    return patch.object(_DeliveryCheck, "_route", route)


OWN: Final[dict[str, Mutation]] = {
    "a job of another lane is taken": a_job_of_another_lane_is_taken,
}
ALL: Final[dict[str, Mutation]] = {**MUTATIONS, **OWN}
