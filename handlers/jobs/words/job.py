"""The job and its lease, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from .pace import PacedBy
from .states import State
from .upload import Upload

Millis: TypeAlias = Annotated[int, Field(ge=0)]
"""UTC epoch milliseconds."""
IdCursor: TypeAlias = Annotated[int, Field(ge=0)] | str
"""An index (inline ids), a byte offset (stored ids) or a query's own cursor as exact text; 0 is
the start of each."""


class Lane(StrEnum):
    """A queue, its dead-letter queue and workers that serve nothing else."""

    SMALL = "small"
    BULK = "bulk"


class EndReason(StrEnum):
    """Why a job failed, beyond what its counts say."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    SUPERSEDED = "superseded"
    TAKEN_OVER = "taken_over"
    UNDECODABLE = "undecodable"
    PAYLOAD_GONE = "payload_gone"
    UNKNOWN_OPERATION = "unknown_operation"
    BAD_PARAMETERS = "bad_parameters"
    TOO_MANY_FAILED = "too_many_failed"
    BAD_UPLOAD = "bad_upload"
    """A line of the uploaded file can't be read; the message names it."""
    UPLOAD_GONE = "upload_gone"
    """The uploaded file was deleted, expired or replaced before it was read."""
    BAD_QUERY = "bad_query"
    """The source of records does not take the query."""


class Waiting(StrEnum):
    """Why a job waits. ``Job.waits_for`` tells it for every job that waits."""

    TENANT_LIMIT = "tenant_limit"
    """QUEUED and held: the tenant has no free slot in the lane."""
    TENANT_STOPPED = "tenant_stopped"
    """QUEUED and held: an operator has set the tenant's limit in the lane to 0. Never stored."""
    LANE_BUSY = "lane_busy"
    """QUEUED: no worker of the lane has received its message yet. Never stored."""
    SLICE = "slice"
    """QUEUED: it ran for a slice and gave way to another job of the lane."""
    RETRY = "retry"
    """QUEUED: its last attempt failed; the job goes on at ``retry_at``."""
    DEPENDENCY_DOWN = "dependency_down"
    """QUEUED: attempt after attempt failed without progress; it goes on at ``retry_at``."""
    RATE_LIMIT = "rate_limit"
    """RUNNING, but a rate limit of its tenant, operation or lane holds its chunks up."""
    WORKER_LOST = "worker_lost"
    """RUNNING, but its worker's lease has expired; the job goes on when its message is received
    again. Stored when recovery sends it a fresh message."""
    PAUSED = "paused"
    """PAUSED: until a client resumes it. Never stored."""
    EFFECTS_OPEN = "effects_open"
    """SETTLING: its records are done, effects are not. Never stored."""
    EFFECTS_PARKED = "effects_parked"
    """SETTLING: an effect was tried too often; it runs again when a replay is requested."""


class Verb(StrEnum):
    """What a client asks of a job."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    REPLAY_EFFECTS = "replay_effects"


class HistoryEntry(BaseModel):
    """A client's request that changed a job."""

    model_config = ConfigDict(frozen=True)

    verb: Verb
    at: Millis
    by: str
    """The verified caller; empty when it is not known."""


OPERATOR: Final = "operator"
"""Who asks through an operator's command; the deployment's own logs say who that was."""
MAX_HISTORY: Final = 50
"""Entries that a job keeps, the newest."""


class Traversal(StrEnum):
    """How a query's records are walked."""

    LIVE = "live"
    """By keyset, while they are being changed."""
    SNAPSHOT = "snapshot"
    """Their ids are written down first."""


class Counts(BaseModel):
    model_config = ConfigDict(frozen=True)

    succeeded: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    skipped: int = Field(default=0, ge=0)

    @property
    def done(self) -> int:
        return self.succeeded + self.failed + self.skipped

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            succeeded=self.succeeded + other.succeeded,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
        )


class Job(BaseModel):
    """A job as it is stored. The store's item has these attributes, plus index keys."""

    model_config = ConfigDict(frozen=True)

    id: str
    tenant: str
    subject: str
    operation: str
    params: str
    """The operation's parameters as the JSON text that was accepted: decimals stay exact."""
    tables: Mapping[str, str] = Field(default_factory=dict)
    """The hash of each lookup table that the parameters name, by the id of its upload."""
    lane: Lane
    state: State
    end_reason: EndReason | None = None
    message: str = ""
    """One sentence for people about the state; empty when there is nothing to add."""

    ids: tuple[str, ...] | None = None
    """The record ids, when they fit inline; also of a query or file over few records."""
    payload: str | None = None
    """The name of the stored id list, when they do not."""
    upload: Upload | None = None
    """The uploaded file the id list is made from."""
    query: str | None = None
    """The filter of the records, as exact JSON."""
    traversal: Traversal | None = None
    """How a query's records are walked; None without a query."""
    total: int | None = Field(default=None, ge=0)
    """Records selected; None until that is known."""
    duplicates: int = Field(default=0, ge=0)

    position: int = Field(default=0, ge=0)
    """Records done so far: the checkpoint."""
    cursor: IdCursor = 0
    """The place in the id source where the next chunk begins."""
    succeeded: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    skipped: int = Field(default=0, ge=0)
    tolerated_failure_percent: int = Field(default=100, ge=0, le=100)
    stop_when_hopeless: bool = False
    """It ends once it can only fail. False for jobs of older versions, which never did."""

    fence: int
    """The subject's fence as of this job's newest attempt (or its creation)."""
    attempt: int = Field(default=0, ge=0)
    retries: int = Field(default=0, ge=0)
    """Attempts that were released because of a dependency since the job last made progress."""
    dispatches: int = Field(default=0, ge=0)
    """Dispatch rows written so far; numbers the next one."""
    not_understood_since: Millis | None = None
    """When a worker first did not understand it; None once a worker has begun it."""
    sent_again: int = Field(default=0, ge=0)
    """How often recovery has sent its message again since an attempt last began."""
    worker: str | None = None
    receipt: str | None = None
    """The newest receipt handle of the job's message that any worker has seen."""

    created_at: Millis
    admitted_at: Millis | None = None
    """When the job got its tenant slot; None while it is held."""
    started_at: Millis | None = None
    """When the first attempt began."""
    finished_at: Millis | None = None
    worked_ms: int = Field(default=0, ge=0)
    """The time that its records took so far: between the beginning of each attempt and its last
    checkpoint. No pause, no wait and no attempt that came to nothing is in it."""
    worked_until: Millis | None = None
    """From when on the next chunk's time counts: the newest checkpoint, or the beginning of the
    newest attempt. None for jobs that only an older version has worked on."""
    retry_at: Millis | None = None
    waiting_reason: Waiting | None = None
    """The reason that the state alone does not tell; see ``waits_for``."""
    waiting_since: Millis | None = None
    """When the job began to wait for the reason that it waits for now."""
    pace: int | None = Field(default=None, ge=0)
    """Percent of the full pace at its last chunk; None at full pace."""
    paced_by: PacedBy | None = None
    """What slowed it down then."""
    idempotency: str | None = None
    """Hash of the client's Idempotency-Key and request, if one was sent."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    notify: str | None = None
    """The address that receives this job's events."""
    created_by: str = ""
    """The verified caller that created it; empty for jobs of older versions."""
    history: tuple[HistoryEntry, ...] = ()
    """The newest requests that changed it, oldest first."""
    verbs: int = Field(default=0, ge=0)
    """How many such requests there were."""
    cleanup: bool = False
    """Finished, but its stored id list has not been deleted yet."""
    effects_open: int = Field(default=0, ge=0)
    """Chunks whose effects are not all done yet."""
    effects_done: int = Field(default=0, ge=0)
    effects_parked: int = Field(default=0, ge=0)
    """Chunks whose effects are given up until a replay is requested."""
    effects_refused: int = Field(default=0, ge=0)
    """Records that a sink refused for good."""
    settles_to: State | None = None
    """The state in which a SETTLING job ends when its last effect is done."""
    retry_of: str | None = None
    """The job whose failed records this one tries again."""
    retried_by: str | None = None
    """The job that tries this one's failed records again; there is only one."""
    has_slot: bool = False
    """The tenant's ``in_flight`` counts this job."""

    @property
    def counts(self) -> Counts:
        return Counts(succeeded=self.succeeded, failed=self.failed, skipped=self.skipped)

    def noted(self, entry: HistoryEntry | None) -> Mapping[str, object]:
        """The fields that record a client's request."""
        if entry is None:
            return {}
        return {"history": (*self.history, entry)[-MAX_HISTORY:], "verbs": self.verbs + 1}

    def worked(self, now: int) -> Mapping[str, int]:
        """The fields that count the time (ms) since the last checkpoint as work."""
        since = now if self.worked_until is None else self.worked_until
        return {"worked_ms": self.worked_ms + max(0, now - since), "worked_until": now}

    @property
    def too_many_failed(self) -> bool:
        """Whether more records failed than it tolerates, of those it is known to have."""
        return self.failed * 100 > self.tolerated_failure_percent * max(self.total or 0, 1)

    @property
    def hopeless(self) -> bool:
        """Whether it fails whatever becomes of the rest. Of an unknown number of records, any share
        may still be enough, but not none."""
        if self.total is None and self.tolerated_failure_percent > 0:
            return False
        return self.too_many_failed

    @property
    def not_tried(self) -> int | None:
        """Records it left alone, once it has ended; None when their number is not known."""
        if self.total is None or not (self.state.terminal or self.state is State.SETTLING):
            return None
        return max(0, self.total - self.position)

    @property
    def unprepared(self) -> bool:
        """Whether the job's id list must be written before its records can be walked."""
        made_first = self.upload is not None or self.traversal is Traversal.SNAPSHOT
        return made_first and self.payload is None and self.ids is None

    @property
    def walked_to_its_end(self) -> bool:
        """Whether a live walk has reached its end: its total is unknown until then."""
        return self.traversal is Traversal.LIVE and self.total is not None

    @property
    def held(self) -> bool:
        return self.state is State.QUEUED and self.waiting_reason is Waiting.TENANT_LIMIT

    @property
    def waits_for_slot(self) -> bool:
        """Whether it runs as soon as a slot of the bulk lane is free, and ``retry_at`` is over."""
        if self.lane is not Lane.BULK:
            return False
        if self.state is State.RUNNING:
            return self.waiting_reason is Waiting.WORKER_LOST
        return self.state is State.QUEUED and not self.held

    @property
    def waits_for(self) -> Waiting | None:
        """Why the job waits, as far as its item tells; None while a worker should be running it,
        and at its end."""
        match self.state:
            case State.QUEUED:
                return self.waiting_reason or Waiting.LANE_BUSY
            case State.PAUSED:
                return Waiting.PAUSED
            case State.SETTLING:
                return self.waiting_reason or Waiting.EFFECTS_OPEN
            case _ if self.state.terminal:
                return None
            case State.RUNNING:
                return self.waiting_reason
            case _:
                # A job that a client stops stops whatever its rate limits say.
                lost = self.waiting_reason is Waiting.WORKER_LOST
                return self.waiting_reason if lost else None

    @property
    def dwell_ms(self) -> int | None:
        """The time (ms) from getting a slot to the first start; None before that."""
        if self.started_at is None or self.admitted_at is None:
            return None
        return max(0, self.started_at - self.admitted_at)


class Lease(BaseModel):
    """The exclusive right to a subject. Never deleted, so the fence never resets."""

    model_config = ConfigDict(frozen=True)

    fence: int
    job_id: str | None = None
    """The holder; None when the subject is free."""
    expires_at: Millis | None = None
    """None while the holder is queued or paused: such a lease does not expire."""
