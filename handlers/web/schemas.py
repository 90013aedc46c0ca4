"""What the API answers, as models: the OpenAPI document is generated from them, and the tests check
every answer against it. Nothing
here runs in a request: answers are made in ``views``. None stands for a field that is left out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ..jobs.results.report import ReportFormat
from ..jobs.words.job import EndReason, Lane, Traversal, Waiting
from ..jobs.words.states import State
from .item_results import ReportOf

JobId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Count = Annotated[int, Field(ge=0)]
Code = Literal[
    "bad_request",
    "unauthorized",
    "insufficient_scope",
    "unknown_principal",
    "not_found",
    "subject_busy",
    "not_possible",
    "too_many_jobs",
    "in_progress",
    "too_large",
    "unprocessable",
    "idempotency_key_reused",
    "report_too_large",
    "retry_too_large",
    "internal",
    "unavailable",
    "unsettled",
    # Of what stands in front of the function:
    "forbidden",
    "throttled",
    "refused",
    "gateway_timeout",
]


class Progress(BaseModel):
    """Over the whole time since the job first started."""

    percent: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="Left out while nobody knows how many records there are."
    )
    per_second: float | None = Field(default=None, description="Records, on average.")
    eta_seconds: Count | None = Field(
        default=None, description="If it goes on like that; only of a running job."
    )


class Effects(BaseModel):
    """Chunks whose effects are open, done and parked, and records that were refused outside."""

    open: Count
    done: Count
    parked: Count
    refused: Count


class JobAnswer(BaseModel):
    """A job. Fields without a value are left out."""

    id: JobId
    url: str
    operation: str
    subject: str
    lane: Lane
    state: State
    end_reason: EndReason | None = Field(default=None, description="Why it failed.")
    waiting_reason: Waiting | None = Field(default=None, description="Why it does not run.")
    queue_position: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="Of one held job that is asked for: its place among the tenant's held jobs of "
        "the lane, 1 for the next to be admitted; 1000 is that or more.",
    )
    message: str | None = Field(default=None, description="One sentence for people.")
    selection: Literal["ids", "upload", "query"]
    traversal: Traversal | None = None
    total: Count | None = None
    duplicates: Count
    succeeded: Count
    failed: Count
    skipped: Count
    progress: Progress | None = None
    effects: Effects | None = None
    attempt: Count
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = None
    dwell_ms: Count | None = Field(
        default=None, description="From when it could have started to when a worker started it."
    )
    labels: dict[str, str] | None = None
    retry_of: JobId | None = Field(
        default=None, description="The job whose failed records this one tries again."
    )
    retried_by: JobId | None = Field(
        default=None, description="The job that tries this one's failed records again."
    )


class JobPage(BaseModel):
    """Newest first. Without ``next`` it is the last page; a page may hold few jobs, or none, while
    there are more."""

    jobs: list[JobAnswer]
    next: str | None = Field(default=None, description="The next page's token, for this list only.")


class Item(BaseModel):
    id: str
    reason: str
    sink: str | None = Field(default=None, description="Of a refused record: who refused it.")


class ItemPage(BaseModel):
    items: list[Item]
    next: str | None = None


class ReportAnswer(BaseModel):
    """A file that can be downloaded for a few minutes."""

    url: str
    expires_at: datetime
    format: ReportFormat
    outcome: ReportOf
    count: Count = Field(description="Records listed.")
    bytes: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    state: State = Field(description="The job's, when the report was made.")
    complete: bool = Field(description="The job had ended.")


class Estimate(BaseModel):
    seconds: Count
    write_units: Count
    assumes: str


class Preview(BaseModel):
    """What ``validate_only`` says: the request is good, and nothing was created."""

    valid: Literal[True]
    lane: Lane
    count: Count | None
    count_is_exact: bool
    duplicates: Count
    sample: list[str]
    traversal: Traversal | None = None
    why: str | None = None
    estimate: Estimate | None = None


class UploadAnswer(BaseModel):
    """Where one file may be sent, by a form that has these fields before the file."""

    upload_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    url: str
    fields: dict[str, str]
    max_bytes: Count
    expires_at: datetime


class OperationAnswer(BaseModel):
    name: str
    description: str
    parameters: dict[str, Any] = Field(description="The JSON Schema of ``params``.")
    sinks: list[str] = Field(description="What is told of changed records.")


class Operations(BaseModel):
    operations: list[OperationAnswer]


class Depth(BaseModel):
    """About how many messages, over all tenants."""

    waiting: Count
    in_flight: Count


class Dwell(BaseModel):
    p50: Count
    p95: Count
    jobs: Count


class Yours(BaseModel):
    in_flight: Count
    held: Count
    limit: Count
    dwell_ms: Dwell | None = Field(default=None, description="Of your recent jobs.")


class LaneAnswer(BaseModel):
    lane: Lane
    queue: Depth
    yours: Yours


class Lanes(BaseModel):
    lanes: list[LaneAnswer]


class ActiveJob(BaseModel):
    id: JobId
    state: State | Literal["unknown"]
    url: str


class FirewallAnswer(BaseModel):
    """A request that the web firewall refused: the API has not heard of it."""

    type: str
    title: str
    status: int
    code: Literal["too_large", "refused", "too_many_requests"]
    detail: str
    answered_by: Literal["waf"]


class ProblemAnswer(BaseModel):
    """RFC 9457, with a stable code."""

    type: str
    title: str
    status: int
    code: Code
    detail: str
    request_id: str
    field: str | None = Field(default=None, description="Where the request is wrong.")
    active_job: ActiveJob | None = Field(
        default=None, description="Of subject_busy: who is in the way."
    )
    state: State | None = Field(default=None, description="Of not_possible: the job's.")
    limit: Count | None = Field(default=None, description="Of too_many_jobs: the tenant's.")
    scope: str | None = Field(
        default=None, description="Of insufficient_scope: the one that is missing."
    )
    fields: list[str] | None = Field(default=None, description="The record fields it is about.")
    answered_by: Literal["waf"] | None = Field(
        default=None, description="Who refused it, where it was not the API itself."
    )
    instance: str | None = None
