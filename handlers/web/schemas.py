"""What the API answers, as models: the OpenAPI document is generated from them, and the tests check
every answer against it. Nothing here runs in a request: answers are made in ``views``. None stands
for a field that is left out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ..jobs.results.report import ReportFormat
from ..jobs.words.job import EndReason, Lane, Traversal, Verb, Waiting
from ..jobs.words.pace import PacedBy
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
    "method_not_allowed",
    "unsupported_media_type",
    "subject_busy",
    "not_possible",
    "too_many_jobs",
    "tenant_stopped",
    "too_many_uploads",
    "in_progress",
    "too_large",
    "unprocessable",
    "idempotency_key_reused",
    "report_too_large",
    "retry_too_large",
    "internal",
    "unavailable",
    "unsettled",
    # From API Gateway and the web firewall, which stand in front of the function:
    "forbidden",
    "throttled",
    "refused",
    "gateway_timeout",
]


class Progress(BaseModel):
    """How far the job is, and its average pace while it worked. Waiting does not count."""

    percent: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="Records done, in percent. Left out until the total is known."
    )
    per_second: float | None = Field(
        default=None, description="Records done per second of working time, on average."
    )
    eta_seconds: Count | None = Field(
        default=None, description="Seconds left at that pace. Only a running job has it."
    )


class Effects(BaseModel):
    """How far the job's changes have reached the search index, the webhook and the event bus."""

    open: Count = Field(
        description="Chunks that still have to be sent. A cancelled or failed job can have some: "
        "what it changed before it ended is sent all the same."
    )
    done: Count = Field(description="Chunks that have been sent.")
    parked: Count = Field(description="Chunks that were given up until a replay.")
    refused: Count = Field(description="Records that a sink refused for good.")


class Pace(BaseModel):
    """How fast a bulk job is let go while others need the database."""

    percent: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None,
        description="Percent of the pace it would have alone. Left out for a rate limit.",
    )
    why: PacedBy = Field(description="What slows it down.")


class SinkWait(BaseModel):
    """A sink that has not taken all of a job's changes."""

    sink: str
    last_answer: str | None = Field(
        default=None,
        description="What it last answered, in words. Left out before its first answer.",
    )


class Wait(BaseModel):
    """Why a job does not run, and until when."""

    reason: Waiting
    since: datetime = Field(description="When the job began to wait for this reason.")
    ahead: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        default=None,
        description="Jobs that start before it: of its tenant with tenant_limit and "
        "tenant_stopped, of its lane with lane_busy and slice. 999 stands for 999 and more. Only "
        "GET /v1/jobs/{job_id} has it.",
    )
    expected_start: datetime | None = Field(
        default=None,
        description="When the job should go on: a promise with retry and dependency_down, else "
        "an estimate, with tenant_limit and lane_busy from the starts of the tenant's jobs in the "
        "last hour. Left out where too little is known.",
    )
    sinks: list[SinkWait] | None = Field(
        default=None,
        description="The sinks that a settling job waits for. Only GET /v1/jobs/{job_id} has it.",
    )


class Request(BaseModel):
    """What the job was asked to do, as far as its other fields do not tell."""

    params: dict[str, Any] = Field(description="The operation's parameters.")
    ids: list[str] | None = Field(
        default=None, description="The ids of the request, when there are at most 100."
    )
    upload_id: str | None = Field(default=None, description="The file with the ids.")
    query: dict[str, Any] | None = Field(
        default=None, description="The filter that selects the records, as in ``JobRequest``."
    )
    tolerated_failure_percent: Annotated[int, Field(ge=0, le=100)]
    stop_when_hopeless: bool
    notify: NotifyAnswer | None = None


class NotifyAnswer(BaseModel):
    """Where the events of the job are sent; the address is shown without its query."""

    url: str


class HistoryEntry(BaseModel):
    """A request that changed the job."""

    verb: Verb
    at: datetime
    by: str | None = Field(
        default=None,
        description="The verified caller, or ``operator`` for an operator's command.",
    )


class JobAnswer(BaseModel):
    """A job. A field without a value is left out."""

    id: JobId
    url: str = Field(
        description="The job's address: an absolute path, with the stage or base path by which the "
        "request came. Resolve it against the address of the request."
    )
    operation: str
    subject: str
    lane: Lane
    state: State
    end_reason: EndReason | None = Field(default=None, description="Why the job failed.")
    waiting_reason: Waiting | None = Field(
        default=None,
        description="Why the job waits, where its state does not tell. ``waiting`` always does.",
    )
    waiting: Wait | None = Field(
        default=None,
        description="Every job that waits has it: QUEUED, PAUSED, SETTLING, or "
        "RUNNING without a worker.",
    )
    queue_position: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="A held job's place among the tenant's held jobs of its lane: 1 is admitted "
        "next, 1000 stands for 1000 and every later place. Only GET /v1/jobs/{job_id} has it.",
    )
    message: str | None = Field(
        default=None, description="One sentence for people about the state."
    )
    selection: Literal["ids", "upload", "query"]
    traversal: Traversal | None = None
    total: Count | None = Field(
        default=None, description="Records selected. Left out until that is known."
    )
    duplicates: Count = Field(description="Repeated ids, which were dropped.")
    succeeded: Count
    failed: Count
    skipped: Count
    not_tried: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Records that a job left alone when it ended before its last one."
    )
    progress: Progress | None = None
    effects: Effects | None = None
    pace: Pace | None = Field(
        default=None, description="Only a running job that is slowed down has it."
    )
    attempt: Count = Field(description="How many attempts have begun.")
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = Field(
        default=None, description="When a waiting job may be tried again."
    )
    dwell_ms: Count | None = Field(
        default=None,
        description="Milliseconds from the job's admission to the start of its first attempt.",
    )
    labels: dict[str, str] | None = None
    retry_of: JobId | None = Field(
        default=None, description="The job whose failed records this one tries again."
    )
    retried_by: JobId | None = Field(
        default=None, description="The job that tries this one's failed records again."
    )
    created_by: str | None = Field(
        default=None,
        description="The verified caller that created the job: the subject of its token, or its "
        "ARN. Left out for jobs of older versions.",
    )
    request: Request | None = Field(default=None, description="A list of jobs leaves it out.")
    history: list[HistoryEntry] | None = Field(
        default=None,
        description="The newest 50 requests that changed the job, oldest first. A list of jobs "
        "leaves it out.",
    )


class JobPage(BaseModel):
    """A page of jobs, newest first. The last page has no ``next``. A page may hold few jobs or none
    and still have a ``next``."""

    jobs: list[JobAnswer]
    next: str | None = Field(
        default=None, description="The token of the next page, for this list only."
    )


class Item(BaseModel):
    """A record that the job did not change, or that a sink refused."""

    id: str
    reason: str
    sink: str | None = Field(default=None, description="The sink that refused the record.")


class ItemPage(BaseModel):
    items: list[Item]
    next: str | None = Field(
        default=None, description="The token of the next page, for this list only."
    )


class ReportAnswer(BaseModel):
    """A file that can be downloaded until ``expires_at``."""

    url: str
    expires_at: datetime
    format: ReportFormat
    outcome: ReportOf
    count: Count = Field(description="Records in the file.")
    bytes: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    state: State = Field(description="The state of the job when the file was made.")
    complete: bool = Field(description="Whether the job had ended by then.")


class Estimate(BaseModel):
    seconds: Count
    write_units: Count = Field(description="DynamoDB write units.")
    assumes: str = Field(description="What the estimate takes for granted.")


class Preview(BaseModel):
    """What a job would do. The request is valid, and nothing was created."""

    valid: Literal[True]
    lane: Lane
    count: Count | None = Field(description="Records selected; null when only the job can tell.")
    count_is_exact: bool
    duplicates: Count = Field(description="Repeated ids, which the job would drop.")
    sample: list[str] = Field(description="Up to ten of the ids.")
    traversal: Traversal | None = None
    why: str | None = Field(default=None, description="Why the job would use this traversal.")
    estimate: Estimate | None = None


class UploadAnswer(BaseModel):
    """The address for one file. The client posts a form to ``url``: first ``fields``, then the file
    under the name ``file``."""

    upload_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    url: str
    fields: dict[str, str]
    max_bytes: Count
    expires_at: datetime


class OperationAnswer(BaseModel):
    name: str
    description: str
    parameters: dict[str, Any] = Field(description="The JSON Schema of ``params``.")
    sinks: list[str] = Field(description="The sinks that hear of changed records.")


class Operations(BaseModel):
    operations: list[OperationAnswer]


class Depth(BaseModel):
    """Messages of all tenants in the lane's queue, approximately."""

    waiting: Count
    in_flight: Count


class Dwell(BaseModel):
    """How long the tenant's recent jobs waited from admission to start, in milliseconds."""

    p50: Count
    p95: Count
    jobs: Count = Field(description="How many jobs were measured.")


class Yours(BaseModel):
    """The tenant's own jobs in the lane."""

    in_flight: Count = Field(description="Jobs that have one of the tenant's slots.")
    held: Count = Field(description="Jobs that wait for a slot.")
    limit: Count = Field(description="How many slots the tenant has.")
    dwell_ms: Dwell | None = Field(
        default=None, description="Left out while no recent job has started."
    )


class LaneAnswer(BaseModel):
    lane: Lane
    queue: Depth
    yours: Yours


class Lanes(BaseModel):
    lanes: list[LaneAnswer]


class ActiveJob(BaseModel):
    id: JobId
    state: State | Literal["unknown"]
    url: str = Field(description="The job's address, as in the job's own ``url``.")


class SubjectAnswer(BaseModel):
    """Who holds a subject now; a free one has no holder."""

    subject: str
    holder: ActiveJob | None = None
    since: datetime | None = Field(
        default=None, description="When the job that holds it was created."
    )
    until: datetime | None = Field(
        default=None,
        description="When the holder's lease expires unless its worker renews it, as it does while "
        "it lives. Left out while the job does not run: then it holds the subject until it ends.",
    )


class FirewallAnswer(BaseModel):
    """The web firewall's refusal of a request. The API never received the request."""

    type: str
    title: str
    status: int
    code: Literal["too_large", "refused", "too_many_requests"]
    detail: str
    answered_by: Literal["waf"]


class FieldProblem(BaseModel):
    """One thing that is wrong with a body."""

    pointer: str = Field(description="A JSON Pointer (RFC 6901) to the wrong part, as a fragment.")
    field: str = Field(description="The same place as people write it, such as ids[3].")
    detail: str


class ProblemAnswer(BaseModel):
    """A problem as in RFC 9457. ``code`` is stable: clients may switch on it."""

    type: str
    title: str
    status: int
    code: Code
    detail: str
    request_id: str
    field: str | None = Field(default=None, description="The field of the request that is wrong.")
    errors: Annotated[list[FieldProblem], Field(max_length=20)] | None = Field(
        default=None, description="Everything that is wrong with the body; the first is in detail."
    )
    active_job: ActiveJob | None = Field(
        default=None, description="With subject_busy: the job that holds the subject."
    )
    state: State | None = Field(
        default=None, description="With not_possible: the state of the job."
    )
    limit: Count | None = Field(
        default=None,
        description="With too_many_jobs and tenant_stopped: how many active jobs the tenant may "
        "have. With too_many_uploads: how many upload addresses.",
    )
    scope: str | None = Field(
        default=None, description="With insufficient_scope: the scope that the token lacks."
    )
    fields: list[str] | None = Field(
        default=None, description="The record fields that the problem is about."
    )
    answered_by: Literal["waf"] | None = Field(
        default=None, description="``waf`` when the web firewall refused the request."
    )
    instance: str | None = None
