"""Every route: where it is, what it takes, what it answers. The functions are in ``api``."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from ..jobs.results.items import ItemOutcome
from ..jobs.results.report import ReportFormat
from ..jobs.selection.request import JobRequest
from ..jobs.words.states import State
from . import item_results, job_list, schemas
from .caller import Scope
from .create_job import OnConflict
from .item_results import ReportOf
from .preview_job import UploadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

Schema = dict[str, Any]

OK, CREATED, ACCEPTED = HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED
NOT_MODIFIED = HTTPStatus.NOT_MODIFIED
BAD, NOT_FOUND, CONFLICT = HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT
LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
UNPROCESSABLE = HTTPStatus.UNPROCESSABLE_ENTITY


@dataclass(frozen=True)
class Parameter:
    name: str
    schema: Mapping[str, Any]
    description: str
    place: str = "query"
    required: bool = False

    def as_json(self) -> Schema:
        return {
            "name": self.name,
            "in": self.place,
            "required": self.required,
            "schema": dict(self.schema),
            "description": self.description,
        }


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    summary: str
    scope: Scope
    answers: Mapping[HTTPStatus, type[BaseModel] | None]
    problems: tuple[HTTPStatus, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None
    headers: tuple[str, ...] = ()
    """Headers of every successful answer."""
    sometimes: tuple[str, ...] = ()
    """Headers of some successful answers."""
    name: str = ""
    """The name of the function in ``api``."""

    @property
    def tag(self) -> str:
        """The group of routes that a generated client has it in."""
        return {"jobs": "jobs", "subjects": "jobs", "uploads": "uploads"}.get(
            self.path.split("/")[2], "deployment"
        )

    @property
    def of_a_job(self) -> bool:
        return "{job_id}" in self.path


def _choice(kind: type[StrEnum], default: StrEnum | None = None) -> Schema:
    schema: Schema = {"type": "string", "enum": [member.value for member in kind]}
    return schema if default is None else {**schema, "default": default.value}


def _limit(default: int, most: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", schema, "The largest number of entries in a page.")


TEXT: Final = {"type": "string"}
TIME: Final = {"type": "string", "format": "date-time"}
FLAG: Final = {"type": "boolean", "default": False}
PAGE: Final = Parameter(
    "page", TEXT, "The 'next' of the previous page; send the same filters with it."
)
JOB_ID: Final = Parameter(
    "job_id",
    {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "The id of a job. A job of another tenant is not found.",
    place="path",
    required=True,
)
KEY: Final = Parameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 256},
    "For a day, the same request with the same key gets the first answer again.",
    place="header",
)
ROUTES: Final = (
    Route(
        "post",
        "/v1/jobs",
        "Create a job, or preview it",
        Scope.WRITE,
        {ACCEPTED: schemas.JobAnswer, OK: None},
        problems=(CONFLICT, LARGE, UNPROCESSABLE),
        parameters=(
            KEY,
            Parameter(
                "validate_only", FLAG, "Answer with a preview of the job and create nothing."
            ),
            Parameter(
                "on_conflict",
                _choice(OnConflict, OnConflict.REJECT),
                "The answer when another job holds the subject: reject is 409, return_existing is "
                "200 with that job.",
            ),
        ),
        body=JobRequest,
        sometimes=("Location", "Idempotency-Replayed"),
        name="create_job",
    ),
    Route(
        "get",
        "/v1/jobs",
        "List jobs, newest first",
        Scope.READ,
        {OK: schemas.JobPage},
        parameters=(
            _limit(job_list.DEFAULT_LIMIT, job_list.MAX_LIMIT),
            PAGE,
            Parameter(
                "state",
                {"type": "array", "items": _choice(State)},
                "List jobs in this state; repeat it for several states.",
            ),
            Parameter("operation", TEXT, "List jobs with this operation."),
            Parameter("subject", TEXT, "List jobs with this subject."),
            Parameter(
                "label",
                {"type": "array", "items": {"type": "string", "pattern": "^[^:]+:"}},
                "List jobs with this label, written name:value; repeat it for jobs that have all "
                "of several labels.",
            ),
            Parameter("created_after", TIME, "List jobs created at this time or later."),
            Parameter("created_before", TIME, "List jobs created before this time."),
        ),
        name="list_jobs",
    ),
    Route(
        "get",
        "/v1/jobs/{job_id}",
        "Show a job",
        Scope.READ,
        {OK: schemas.JobAnswer, NOT_MODIFIED: None},
        parameters=(
            Parameter(
                "If-None-Match",
                TEXT,
                "The ETag of an earlier answer: the answer is 304 while the job has not changed.",
                place="header",
            ),
        ),
        headers=("ETag",),
        sometimes=("Retry-After",),
        name="get_job",
    ),
    Route(
        "get",
        "/v1/jobs/{job_id}/items",
        "List the records of a job that failed, were skipped or were refused outside",
        Scope.READ,
        {OK: schemas.ItemPage},
        parameters=(
            Parameter(
                "outcome",
                _choice(ItemOutcome),
                "The outcome of the records to list.",
                required=True,
            ),
            _limit(item_results.DEFAULT_LIMIT, item_results.MAX_LIMIT),
            PAGE,
        ),
        name="list_items",
    ),
    Route(
        "post",
        "/v1/jobs/{job_id}/report",
        "Write a file of the records that failed, were skipped or were refused outside",
        Scope.READ,
        {CREATED: schemas.ReportAnswer},
        problems=(UNPROCESSABLE,),
        parameters=(
            Parameter("format", _choice(ReportFormat, ReportFormat.CSV), "The format of the file."),
            Parameter(
                "outcome",
                _choice(ReportOf, ReportOf.ALL),
                "The outcome of the records to write.",
            ),
        ),
        headers=("Location",),
        name="create_report",
    ),
    *(
        Route(
            "post",
            f"/v1/jobs/{{job_id}}/{verb}",
            summary,
            Scope.WRITE,
            {ACCEPTED: schemas.JobAnswer, OK: schemas.JobAnswer},
            problems=(CONFLICT,),
            headers=("Location",),
            name=name,
        )
        for verb, name, summary in (
            ("cancel", "cancel_job", "Cancel a job at its next chunk"),
            ("pause", "pause_job", "Pause a job at its next chunk"),
            ("resume", "resume_job", "Resume a paused job"),
            ("effects/replay", "replay_effects", "Replay the parked effects of a job"),
        )
    ),
    Route(
        "post",
        "/v1/jobs/{job_id}/retry",
        "Run a failed job again, or create a job over its failed records",
        Scope.WRITE,
        {ACCEPTED: schemas.JobAnswer, OK: schemas.JobAnswer},
        problems=(CONFLICT, UNPROCESSABLE),
        parameters=(
            Parameter(
                "failed_only",
                FLAG,
                "Create a job over the failed records of a job that has ended. A repeated request "
                "gets the same new job.",
            ),
        ),
        headers=("Location",),
        name="retry_job",
    ),
    Route(
        "post",
        "/v1/uploads",
        "Get an address for uploading a file of ids, or a lookup table",
        Scope.WRITE,
        {CREATED: schemas.UploadAnswer},
        problems=(UNPROCESSABLE,),
        body=UploadRequest,
        name="create_upload",
    ),
    Route(
        "get",
        "/v1/subjects",
        "Show which job holds a subject",
        Scope.READ,
        {OK: schemas.SubjectAnswer},
        parameters=(Parameter("name", TEXT, "The subject, exactly.", required=True),),
        name="get_subject",
    ),
    Route(
        "get",
        "/v1/operations",
        "List the operations of this deployment",
        Scope.READ,
        {OK: schemas.Operations},
        name="list_operations",
    ),
    Route(
        "get",
        "/v1/lanes",
        "Show how busy the lanes are",
        Scope.READ,
        {OK: schemas.Lanes},
        name="list_lanes",
    ),
    Route("get", "/v1/openapi.json", "Get this document", Scope.READ, {OK: None}, name="openapi"),
)
