"""The words of the API, as its OpenAPI document lists them; a test compares the two.

An answer may hold words that are newer than this client: fields have the type ``Word | str``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    SETTLING = "SETTLING"
    """Every record is done; effects outside the database are not."""
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


ENDED: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})


class Lane(StrEnum):
    SMALL = "small"
    BULK = "bulk"


class EndReason(StrEnum):
    """Why a job failed."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    SUPERSEDED = "superseded"
    TAKEN_OVER = "taken_over"
    UNDECODABLE = "undecodable"
    PAYLOAD_GONE = "payload_gone"
    UNKNOWN_OPERATION = "unknown_operation"
    BAD_PARAMETERS = "bad_parameters"
    TOO_MANY_FAILED = "too_many_failed"
    BAD_UPLOAD = "bad_upload"
    UPLOAD_GONE = "upload_gone"
    BAD_QUERY = "bad_query"


class Waiting(StrEnum):
    """Why a job does not run."""

    TENANT_LIMIT = "tenant_limit"
    TENANT_STOPPED = "tenant_stopped"
    LANE_BUSY = "lane_busy"
    SLICE = "slice"
    RETRY = "retry"
    DEPENDENCY_DOWN = "dependency_down"
    RATE_LIMIT = "rate_limit"
    WORKER_LOST = "worker_lost"
    PAUSED = "paused"
    EFFECTS_OPEN = "effects_open"
    EFFECTS_PARKED = "effects_parked"


class PacedBy(StrEnum):
    """What slows a bulk job down."""

    SMALL_LANE = "small_lane"
    THROTTLING = "throttling"
    CONFLICTS = "conflicts"
    LATENCY = "latency"
    RATE_LIMIT = "rate_limit"


class Verb(StrEnum):
    """What was asked of a job."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    REPLAY_EFFECTS = "replay_effects"


class Selection(StrEnum):
    """How a job's records were named."""

    IDS = "ids"
    UPLOAD = "upload"
    QUERY = "query"


class Traversal(StrEnum):
    """How a query's records are walked."""

    LIVE = "live"
    SNAPSHOT = "snapshot"


class AskedTraversal(StrEnum):
    """What a request may ask for."""

    AUTO = "auto"
    LIVE = "live"
    SNAPSHOT = "snapshot"


class OnConflict(StrEnum):
    """What to answer when another job has the subject."""

    REJECT = "reject"
    RETURN_EXISTING = "return_existing"


class Outcome(StrEnum):
    """What became of a record that was not changed as asked."""

    FAILED = "failed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    """Changed, but a place outside does not take it."""


class ReportOf(StrEnum):
    """Which records a report lists."""

    FAILED = "failed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    ALL = "all"


class ReportFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"


class UploadFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
