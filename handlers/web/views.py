"""Jobs as clients see them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from ..jobs.model import Job

BASE: Final = "/v1/jobs"
_JOB_ID: Final = re.compile(r"[0-9a-f]{32}")


def is_job_id(value: object) -> TypeGuard[str]:
    """Whether it can be a job's id; what can't be one need not be looked up."""
    return isinstance(value, str) and _JOB_ID.fullmatch(value) is not None


def location(job_id: str) -> str:
    return f"{BASE}/{job_id}"


def job_view(job: Job) -> dict[str, Any]:
    """A JSON object; absent values are left out. Times are UTC, ISO 8601 with milliseconds."""
    view = {
        "id": job.id,
        "url": location(job.id),
        "operation": job.operation,
        "subject": job.subject,
        "lane": job.lane.value,
        "state": job.state.value,
        "end_reason": job.end_reason.value if job.end_reason else None,
        "waiting_reason": job.waiting_reason.value if job.waiting_reason else None,
        "message": job.message or None,
        "selection": selection(job),
        "traversal": job.traversal.value if job.traversal else None,
        "total": job.total,
        "duplicates": job.duplicates,
        "succeeded": job.succeeded,
        "failed": job.failed,
        "skipped": job.skipped,
        "percent": percent(job),
        "effects": effects(job),
        "attempt": job.attempt,
        "created_at": timestamp(job.created_at),
        "started_at": timestamp(job.started_at),
        "finished_at": timestamp(job.finished_at),
        "retry_at": timestamp(job.retry_at),
        "dwell_ms": job.dwell_ms,
        "labels": dict(job.labels) or None,
    }
    return {name: value for name, value in view.items() if value is not None}


def percent(job: Job) -> int | None:
    """Of the records settled; a job over none of them is done. None while nobody knows of how
    many: a live walk counts them as it goes."""
    if job.total is None:
        return None
    return 100 if job.total == 0 else job.position * 100 // job.total


def effects(job: Job) -> dict[str, int] | None:
    """Chunks whose effects are open, done and parked, and records that were refused outside; None
    while there are no effects."""
    counts = {
        "open": job.effects_open,
        "done": job.effects_done,
        "parked": job.effects_parked,
        "refused": job.effects_refused,
    }
    return counts if any(counts.values()) else None


def selection(job: Job) -> str:
    """How its records were named."""
    if job.upload is not None:
        return "upload"
    return "ids" if job.query is None else "query"


def timestamp(at: int | None) -> str | None:
    if at is None:
        return None
    text = datetime.fromtimestamp(at / 1000, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
