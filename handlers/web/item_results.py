"""What became of single records: ``GET /v1/jobs/{id}/items`` and ``.../report``."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ..jobs.results.items import ItemOutcome, Mark, Unfinished, is_row, item_page
from ..jobs.results.report import ReportFormat, write_report
from .page_tokens import place_of, token
from .problems import Problem, bad_request
from .views import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..jobs.results.items import ItemResult
    from ..jobs.words.job import Job
    from ..jobs.words.ports import World
    from .query import Query

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_BYTES: Final = 1024 * 1024
"""Of the ids and reasons of one page: as JSON, and as a string in JSON, they stay far below what a
function may answer."""
MOST_TAKEN: Final = 10_000
"""More results than a row can hold; a page token with more is none of ours."""
LINK_SECONDS: Final = 900
RESERVE_MS: Final = 3000
"""Time that a request which reads all of a job's records keeps for its last part, a new job and the
answer."""


class ReportOf(StrEnum):
    FAILED = "failed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    ALL = "all"

    @property
    def outcomes(self) -> tuple[ItemOutcome, ...]:
        return tuple(ItemOutcome) if self is ReportOf.ALL else (ItemOutcome(self.value),)


def items_view(world: World, job: Job, query: Query) -> dict[str, Any]:
    """``{"items": [...], "next": token}``. Raises Problem, Transient."""
    outcome = query.choice("outcome", ItemOutcome)
    if outcome is None:
        raise bad_request(
            "outcome", f"must be one of {', '.join(each.value for each in ItemOutcome)}"
        )
    limit = query.whole("limit", default=DEFAULT_LIMIT, most=MAX_LIMIT)
    list_ = (job.tenant, "items", job.id, outcome.value)
    text = query.get("page")
    mark = Mark() if text is None else _mark(outcome, list_, text)
    found = item_page(world, job, outcome, mark, limit=limit, max_bytes=MAX_BYTES)
    view: dict[str, Any] = {"items": [_item(result) for result in found.found]}
    if found.next is not None:
        view["next"] = token(list_, [found.next.row, found.next.taken])
    return view


def report_view(
    world: World, job: Job, query: Query, remaining_ms: Callable[[], int]
) -> dict[str, Any]:
    """Writes the report. Raises Problem, Transient."""
    form = query.choice("format", ReportFormat) or ReportFormat.CSV
    of = query.choice("outcome", ReportOf) or ReportOf.ALL
    try:
        report = write_report(world, job, of.outcomes, form, lambda: remaining_ms() < RESERVE_MS)
    except Unfinished as error:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "report_too_large",
            "the job has more records to report than one request can write in time; list them "
            "with GET /v1/jobs/{job_id}/items instead",
        ) from error
    file_name = f"{job.id}-{of.value}.{form.value}"
    return {
        "url": world.payloads.link(report.name, file_name=file_name, seconds=LINK_SECONDS),
        "expires_at": timestamp(world.runtime.now() + LINK_SECONDS * 1000),
        "format": form.value,
        "outcome": of.value,
        "count": report.count,
        "bytes": report.bytes,
        "sha256": report.sha256,
        "state": job.state.value,
        "complete": job.state.terminal,
    }


def _item(result: ItemResult) -> dict[str, str]:
    view = {"id": result.id, "reason": result.reason}
    return view if result.sink is None else {**view, "sink": result.sink}


def _mark(outcome: ItemOutcome, list_: tuple[str, ...], text: str) -> Mark:
    match place_of(list_, text):
        case [(str() | None) as row, int() as taken] if (
            (row is None or is_row(outcome, row))
            and not isinstance(taken, bool)
            and 0 <= taken <= MOST_TAKEN
        ):
            return Mark(row, taken)
    raise bad_request("page", "is not a token of this list")
