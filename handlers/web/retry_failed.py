"""``POST /v1/jobs/{id}/retry?failed_only=true``: within the time of a request, or not at all."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from ..jobs.lifecycle.retry_failed import retry_failed
from ..jobs.results.items import Unfinished
from .item_results import RESERVE_MS
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..jobs.lifecycle.control import Answer
    from ..jobs.words.ports import World


def in_time(remaining_ms: Callable[[], int]) -> Callable[[World, str, str, str], Answer]:
    """``retry_failed`` for a request. What it returns raises Problem, Transient."""

    def act(world: World, tenant: str, job_id: str, by: str) -> Answer:
        try:
            return retry_failed(world, tenant, job_id, lambda: remaining_ms() < RESERVE_MS, by)
        except Unfinished as error:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "retry_too_large",
                "the job has more failed records than one request can read in time; nothing was "
                "created. List the failed records with GET /v1/jobs/{job_id}/items, upload their "
                "ids with POST /v1/uploads and create a job over the upload",
            ) from error

    return act
