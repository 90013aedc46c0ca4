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


def in_time(remaining_ms: Callable[[], int]) -> Callable[[World, str, str], Answer]:
    """``retry_failed`` for a request. What it returns raises Problem, Transient."""

    def act(world: World, tenant: str, job_id: str) -> Answer:
        try:
            return retry_failed(world, tenant, job_id, lambda: remaining_ms() < RESERVE_MS)
        except Unfinished as error:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "retry_too_large",
                "so many records take longer to read than a request may; nothing was made: page "
                "through the failed items and upload their ids for a job of their own",
            ) from error

    return act
