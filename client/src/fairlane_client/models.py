"""The API's answers. Fields that are newer than this client are kept, words too.

A test compares each with its schema in the API's OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from . import words
from .words import ENDED

# The word of that name if there is one, else the text as it came.
_OPEN = Field(union_mode="left_to_right")
State: TypeAlias = Annotated[words.State | str, _OPEN]
Lane: TypeAlias = Annotated[words.Lane | str, _OPEN]
EndReason: TypeAlias = Annotated[words.EndReason | str, _OPEN]
Waiting: TypeAlias = Annotated[words.Waiting | str, _OPEN]
PacedBy: TypeAlias = Annotated[words.PacedBy | str, _OPEN]
Verb: TypeAlias = Annotated[words.Verb | str, _OPEN]
Selection: TypeAlias = Annotated[words.Selection | str, _OPEN]
Traversal: TypeAlias = Annotated[words.Traversal | str, _OPEN]
ReportFormat: TypeAlias = Annotated[words.ReportFormat | str, _OPEN]
ReportOf: TypeAlias = Annotated[words.ReportOf | str, _OPEN]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    def as_json(self) -> dict[str, Any]:
        """A JSON object; absent values are left out."""
        return self.model_dump(mode="json", exclude_none=True)


class Progress(Answer):
    """Over the time that the job worked, without any waiting; None: not known yet."""

    percent: int | None = None
    per_second: float | None = None
    """Records, on average."""
    eta_seconds: int | None = None


class EffectsView(Answer):
    """Chunks whose effects are open, done and parked; records that were refused outside."""

    open: int
    done: int
    parked: int
    refused: int


class PaceView(Answer):
    """How fast a bulk job is let go while others need the database."""

    percent: int | None = None
    """None for a rate limit."""
    why: PacedBy


class SinkWaitView(Answer):
    """A sink that has not taken all of a job's changes."""

    sink: str
    last_answer: str | None = None
    """None before its first answer."""


class WaitView(Answer):
    """Why a job does not run, and until when."""

    reason: Waiting
    since: AwareDatetime
    ahead: int | None = None
    """Jobs that start before it, where the API counts them."""
    expected_start: AwareDatetime | None = None
    sinks: tuple[SinkWaitView, ...] | None = None
    """Those that a settling job waits for."""


class NotifyView(Answer):
    url: str
    """Without its query."""


class RequestView(Answer):
    """What a job was asked to do, as far as its other fields do not tell."""

    params: Mapping[str, Any]
    ids: tuple[str, ...] | None = None
    """When there are at most 100."""
    upload_id: str | None = None
    query: Mapping[str, Any] | None = None
    tolerated_failure_percent: int
    stop_when_hopeless: bool
    notify: NotifyView | None = None


class HistoryView(Answer):
    """A request that changed a job."""

    verb: Verb
    at: AwareDatetime
    by: str | None = None
    """The verified caller, or ``operator``."""


class JobView(Answer):
    """A job as its tenant sees it."""

    id: str
    url: str
    operation: str
    subject: str
    lane: Lane
    state: State
    end_reason: EndReason | None = None
    waiting_reason: Waiting | None = None
    waiting: WaitView | None = None
    """Of a job that waits, whatever its state."""
    queue_position: int | None = None
    """Of a held job: 1 is the next of its tenant to be admitted."""
    message: str | None = None
    selection: Selection
    traversal: Traversal | None = None
    total: int | None = None
    """None while it is not known: a live query counts its records as it goes."""
    duplicates: int
    succeeded: int
    failed: int
    skipped: int
    not_tried: int | None = None
    """Of a job that ended before its last record: those it left alone."""
    progress: Progress | None = None
    effects: EffectsView | None = None
    pace: PaceView | None = None
    """Of a running job that is slowed down."""
    attempt: int
    created_at: AwareDatetime
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    retry_at: AwareDatetime | None = None
    dwell_ms: int | None = None
    """From the moment it could have started to the moment a worker started it."""
    labels: Mapping[str, str] | None = None
    retry_of: str | None = None
    """The job whose failed records this one tries again."""
    retried_by: str | None = None
    """The job that tries this one's failed records again."""
    created_by: str | None = None
    """The verified caller that created it."""
    request: RequestView | None = None
    """None in a list."""
    history: tuple[HistoryView, ...] | None = None
    """The newest 50 requests that changed it, oldest first; None in a list."""
    existing: bool | None = None
    """This client's own: of a submission that created nothing, since this job has the subject."""

    @property
    def done(self) -> int:
        """Records settled so far."""
        return self.succeeded + self.failed + self.skipped

    @property
    def refused(self) -> int:
        """Records that were changed, but that a place outside does not take."""
        return 0 if self.effects is None else self.effects.refused

    @property
    def ended(self) -> bool:
        """Nothing will change any more, unless it is asked for."""
        if isinstance(self.state, words.State):
            return self.state in ENDED
        return self.finished_at is not None


class JobPage(Answer):
    """Some of a tenant's jobs, newest first."""

    jobs: tuple[JobView, ...]
    next: str | None = None
    """The token of the next page."""


class HolderView(Answer):
    id: str
    state: Annotated[words.State | str, _OPEN]
    url: str


class SubjectView(Answer):
    """Which job holds a subject; None: it is free."""

    subject: str
    holder: HolderView | None = None
    since: AwareDatetime | None = None
    """When the holder was created."""
    until: AwareDatetime | None = None
    """When the holder's lease expires unless its worker renews it."""


class ItemView(Answer):
    """A record that was not changed as asked, or that was refused outside."""

    id: str
    reason: str
    sink: str | None = None
    """Of a refused record: the place that does not take it."""


class ItemPage(Answer):
    items: tuple[ItemView, ...]
    next: str | None = None


class ReportView(Answer):
    """A file that can be downloaded until ``expires_at``."""

    url: str
    expires_at: AwareDatetime
    format: ReportFormat
    outcome: ReportOf
    count: int
    """Records listed."""
    bytes: int
    sha256: str
    state: State
    """The job's, when the report was made."""
    complete: bool
    """The job had ended."""


class Estimate(Answer):
    seconds: int
    write_units: int
    assumes: str


class JobPreview(Answer):
    """What creating a job would do."""

    valid: bool
    lane: Lane
    count: int | None
    """None: only reading the whole file would tell."""
    count_is_exact: bool
    """False: there are that many or more."""
    duplicates: int
    sample: tuple[str, ...]
    traversal: Traversal | None = None
    why: str | None = None
    estimate: Estimate | None = None


class UploadAddress(Answer):
    """Where a file may be sent, until when, and how to name it then."""

    upload_id: str
    url: str
    fields: Mapping[str, str]
    max_bytes: int
    expires_at: AwareDatetime


class OperationView(Answer):
    """What a job can do to records."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of ``params``."""
    sinks: tuple[str, ...]
    """What outside is told of changed records."""


class Operations(Answer):
    operations: tuple[OperationView, ...]


class QueueView(Answer):
    """About how many messages there are, over all tenants."""

    waiting: int
    in_flight: int


class DwellView(Answer):
    """Milliseconds, over so many of the tenant's newest jobs."""

    p50: int
    p95: int
    jobs: int


class YoursView(Answer):
    """The tenant's own."""

    in_flight: int
    held: int
    limit: int
    dwell_ms: DwellView | None = None


class LaneView(Answer):
    lane: Lane
    queue: QueueView
    yours: YoursView


class Lanes(Answer):
    """The answer of ``GET /v1/lanes``."""

    lanes: tuple[LaneView, ...]
