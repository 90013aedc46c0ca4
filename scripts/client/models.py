"""Jobs as the API takes and gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from handlers.jobs.words.exact_json import exact_json
from handlers.jobs.words.job import EndReason, Lane, Waiting
from handlers.jobs.words.states import State


class NewJob(BaseModel):
    """The body of ``POST /v1/jobs``. The API checks it; this only gives it its shape."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: str
    subject: str
    ids: Sequence[str] | None = None
    upload_id: str | None = None
    query: Mapping[str, Any] | None = None
    """Exactly one of these three says which records."""
    traversal: str | None = None
    """Of a query: auto, live or snapshot."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    """JSON values, with ``int`` or ``Decimal`` for numbers."""
    tolerated_failure_percent: int | None = None
    labels: Mapping[str, str] | None = None
    notify: Mapping[str, str] | None = None
    """``{"url": ...}``: who is told when the job starts and ends."""

    def json_body(self) -> bytes:
        """Exact: a Decimal stays the number it is. Raises TypeError for a float."""
        return exact_json(self.model_dump(mode="python", exclude_none=True)).encode()


class Progress(BaseModel):
    """Over the whole time since the job started; what nobody knows is None."""

    model_config = ConfigDict(frozen=True, extra="allow")

    percent: int | None = None
    per_second: float | None = None
    eta_seconds: int | None = None


class JobView(BaseModel):
    """A job as its tenant sees it. Fields that are newer than this client are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    url: str
    operation: str
    subject: str
    lane: Lane
    state: State
    end_reason: EndReason | None = None
    waiting_reason: Waiting | None = None
    message: str | None = None
    selection: str | None = None
    total: int | None = None
    """None while nobody knows: a live query counts its records as it goes."""
    duplicates: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    queue_position: int | None = None
    """Of a held job: 1 is the next of its tenant to be admitted."""
    progress: Progress | None = None
    attempt: int = 0
    created_at: AwareDatetime
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    retry_at: AwareDatetime | None = None
    dwell_ms: int | None = None
    labels: Mapping[str, str] | None = None
    existing: bool | None = None
    """Of the answer to a submission: nothing was created, this job has the subject."""

    @property
    def done(self) -> int:
        """Records settled so far."""
        return self.succeeded + self.failed + self.skipped

    def as_json(self) -> dict[str, Any]:
        """A JSON object; absent values are left out."""
        return self.model_dump(mode="json", exclude_none=True)


class ItemView(BaseModel):
    """A record that was not changed as asked, or that was refused outside."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    reason: str
    sink: str | None = None
    """Of a refused one: who refused it."""


class ItemPage(BaseModel):
    model_config = ConfigDict(frozen=True)

    items: tuple[ItemView, ...]
    next: str | None = None


class ReportView(BaseModel):
    """A file that can be downloaded until ``expires_at``."""

    model_config = ConfigDict(frozen=True, extra="allow")

    url: str
    expires_at: AwareDatetime
    count: int
    bytes: int
    sha256: str
    complete: bool
    """The job had ended."""


class JobPreview(BaseModel):
    """What creating a job would do. Fields that are newer than this client are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    lane: Lane
    count: int | None = None
    """None: only reading the whole file would tell."""
    count_is_exact: bool
    """False: there are that many or more."""
    duplicates: int = 0
    sample: tuple[str, ...] = ()
    traversal: str | None = None
    why: str | None = None
    estimate: Mapping[str, Any] | None = None


class QueueView(BaseModel):
    """About how many messages there are, of everybody."""

    model_config = ConfigDict(frozen=True)

    waiting: int
    in_flight: int


class DwellView(BaseModel):
    """Milliseconds, over so many of the tenant's newest jobs."""

    model_config = ConfigDict(frozen=True)

    p50: int
    p95: int
    jobs: int


class YoursView(BaseModel):
    """The tenant's own."""

    model_config = ConfigDict(frozen=True)

    in_flight: int
    held: int
    limit: int
    dwell_ms: DwellView | None = None


class LaneView(BaseModel):
    model_config = ConfigDict(frozen=True)

    lane: Lane
    queue: QueueView
    yours: YoursView


class Lanes(BaseModel):
    """The answer of ``GET /v1/lanes``."""

    model_config = ConfigDict(frozen=True)

    lanes: tuple[LaneView, ...]


class JobPage(BaseModel):
    """Some of a tenant's jobs, newest first."""

    model_config = ConfigDict(frozen=True)

    jobs: tuple[JobView, ...]
    next: str | None = None
    """The token of the next page."""
