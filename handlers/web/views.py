"""Jobs as clients see them."""

from __future__ import annotations

import hashlib
import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ..jobs.lifecycle.waiting import Wait, wait_of
from ..jobs.words.exact_json import exact_json, exact_loads
from ..jobs.words.states import State
from ..jobs.words.timing import SECOND
from .addresses import location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.job import Job

SHOWN_IDS: Final = 100
"""Ids of a request that an answer repeats; of more, it has the count."""
LONGEST_WAIT: Final = 30
HELD_WAIT: Final = 5
"""Seconds."""
_JOB_ID: Final = re.compile(r"[0-9a-f]{32}")


def is_job_id(value: object) -> TypeGuard[str]:
    """Whether it can be a job's id; what can't be one need not be looked up."""
    return isinstance(value, str) and _JOB_ID.fullmatch(value) is not None


def job_view(
    job: Job, now: int, wait: Wait | None = None, *, base: str = "", whole: bool = True
) -> dict[str, Any]:
    """A JSON object; absent values are left out. Times are UTC, ISO 8601 with milliseconds.

    now: epoch ms; what the rate and the remaining time are as of. wait: why the job waits, when
    more is known than its item tells. base: where the API is for the client, see ``addresses``.
    whole: with what was asked and by whom, which a list has no room for. Numbers are int or
    Decimal.
    """
    wait = wait or wait_of(job, now)
    view = {
        "id": job.id,
        "url": location(job.id, base),
        "operation": job.operation,
        "subject": job.subject,
        "lane": job.lane.value,
        "state": job.state.value,
        "end_reason": job.end_reason.value if job.end_reason else None,
        "waiting_reason": job.waiting_reason.value if job.waiting_reason else None,
        "queue_position": _place(job, wait),
        "waiting": waiting(wait),
        "message": job.message or None,
        "selection": selection(job),
        "traversal": job.traversal.value if job.traversal else None,
        "total": job.total,
        "duplicates": job.duplicates,
        "succeeded": job.succeeded,
        "failed": job.failed,
        "skipped": job.skipped,
        "not_tried": job.not_tried or None,
        "progress": progress(job, now),
        "effects": effects(job),
        "pace": pace(job),
        "attempt": job.attempt,
        "created_at": timestamp(job.created_at),
        "started_at": timestamp(job.started_at),
        "finished_at": timestamp(job.finished_at),
        "retry_at": timestamp(job.retry_at),
        "dwell_ms": job.dwell_ms,
        "labels": dict(job.labels) or None,
        "retry_of": job.retry_of,
        "retried_by": job.retried_by,
        "created_by": job.created_by or None,
        "request": request_view(job) if whole else None,
        "history": history(job) if whole else None,
    }
    return {name: value for name, value in view.items() if value is not None}


def request_view(job: Job) -> dict[str, Any]:
    """What the job was asked to do. Records that were named otherwise than by a few ids or a query
    are named by their upload, or counted only."""
    parts = {
        "params": exact_loads(job.params) if job.params else {},
        "ids": _few_ids(job),
        "upload_id": None if job.upload is None else job.upload.name.rsplit("/", 1)[-1],
        "query": None if job.query is None else exact_loads(job.query),
        "tolerated_failure_percent": job.tolerated_failure_percent,
        "stop_when_hopeless": job.stop_when_hopeless,
        "notify": None if job.notify is None else {"url": job.notify.partition("?")[0]},
    }
    return {name: value for name, value in parts.items() if value is not None}


def _few_ids(job: Job) -> list[str] | None:
    """The ids of the request, when they are not many."""
    if selection(job) != "ids" or job.ids is None or len(job.ids) > SHOWN_IDS:
        return None
    return list(job.ids)


def history(job: Job) -> list[dict[str, Any]] | None:
    """The newest requests that changed the job, oldest first."""
    return [
        {
            "verb": entry.verb.value,
            "at": timestamp(entry.at),
            **({"by": entry.by} if entry.by else {}),
        }
        for entry in job.history
    ] or None


def _place(job: Job, wait: Wait | None) -> int | None:
    """A held job's place in its tenant's own line."""
    if wait is None or wait.ahead is None or not job.held:
        return None
    return wait.ahead + 1


def waiting(wait: Wait | None) -> dict[str, Any] | None:
    """Why a job waits; None when it does not."""
    if wait is None:
        return None
    parts = {
        "reason": wait.reason.value,
        "since": timestamp(wait.since),
        "ahead": wait.ahead,
        "expected_start": timestamp(wait.expected_start),
        "sinks": [
            {"sink": sink.name, **({"last_answer": sink.answer} if sink.answer else {})}
            for sink in wait.sinks
        ]
        or None,
    }
    return {name: value for name, value in parts.items() if value is not None}


def progress(job: Job, now: int) -> dict[str, Any] | None:
    """Of the records settled so far, over the time that they took. A part nobody can know yet is
    left out: a live walk counts its records as it goes."""
    percent = rate = eta = None
    if job.total is not None:
        # A job over no records is done.
        percent = 100 if job.total == 0 else job.position * 100 // job.total
    if job.started_at is not None and job.position:
        rate = job.position * SECOND / max(_taken(job, job.started_at, now), 1)
    if rate and job.total is not None and job.state is State.RUNNING:
        eta = math.ceil((job.total - job.position) / rate)
    parts = {
        "percent": percent,
        "per_second": None if rate is None else Decimal(str(round(rate, 1))),
        "eta_seconds": eta,
    }
    return {name: value for name, value in parts.items() if value is not None} or None


def _taken(job: Job, started: int, now: int) -> int:
    """The time (ms) that its records took. For a job of an older version, which did not count it,
    the whole time since it started."""
    if job.worked_until is None:
        return (job.finished_at or now) - started
    return job.worked_ms


def etag(view: Mapping[str, Any]) -> str:
    """Changes when something happened to the job; time passing is nothing that happened."""
    known = {name: value for name, value in view.items() if name not in {"progress", "pace"}}
    if "waiting" in known:
        known["waiting"] = {**known["waiting"], "expected_start": None}
    text = exact_json({name: known[name] for name in sorted(known)})
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def matches(tags: str | None, tag: str) -> bool:
    """Whether an If-None-Match names the tag (RFC 9110, weakly compared)."""
    if tags is None:
        return False
    given = {part.strip().removeprefix("W/") for part in tags.split(",")}
    return tags.strip() == "*" or tag.removeprefix("W/") in given


def look_again(job: Job, now: int) -> int | None:
    """Seconds until it may be worth asking again; None when the job has ended."""
    match job.state:
        case state if state.terminal:
            return None
        case State.QUEUED if job.retry_at is not None:
            wait = (job.retry_at - now) / SECOND
        case State.PAUSED:
            wait = LONGEST_WAIT
        case State.QUEUED if job.held:
            wait = HELD_WAIT
        case State.RUNNING:
            # A tenth of what is left: often enough to see it end, seldom while it takes long.
            wait = (progress(job, now) or {}).get("eta_seconds", 0) / 10
        case _:
            wait = 0
    return min(max(math.ceil(wait), 1), LONGEST_WAIT)


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


def pace(job: Job) -> dict[str, Any] | None:
    """How fast a running job is let go, and why not faster; None at full pace."""
    if job.state is not State.RUNNING or job.paced_by is None:
        return None
    return ({} if job.pace is None else {"percent": job.pace}) | {"why": job.paced_by.value}


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
