"""The request for a job, checked at the edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..words.errors import FairlaneError
from ..words.exact_json import exact_json, exact_loads
from ..words.filters import TAGS, Filter
from ..words.limits import MAX_ID_BYTES, MAX_PARAMS_BYTES, MAX_QUERY_BYTES, MAX_SUBJECT_BYTES
from ..words.operation import Operation, Operations
from ..words.text_rules import text_problem, text_schema
from .traversal import Asked

SELECTIONS: Final = ("ids", "upload_id", "query")
UPLOAD_INSTEAD: Final = "send more ids as a file, by POST /v1/uploads"
UPLOAD_ID: Final = r"^[0-9a-f]{32}$"
MAX_LABELS: Final = 10
MAX_ADDRESS_BYTES: Final = 2048
ADDRESS: Final = r"^https?://[^/@?#\s]+([/?]\S*)?$"
"""Without a user, and without a fragment, which would never be sent."""
MAX_DEPTH: Final = 32
MAX_PATH: Final = 200
"""Characters of the path that names what is wrong: a client may call a field anything."""


class BadRequest(FairlaneError):
    """The request cannot be accepted as it is."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        """The path of the wrong part, such as ``ids[3]`` or ``params.field``; "" is the whole
        body."""


class TooLarge(BadRequest):
    """The request is over a size limit."""


class Unprocessable(BadRequest):
    """The request is well-formed, but what it names does not exist or does not go together."""

    def __init__(self, field: str, message: str, names: frozenset[str] = frozenset()) -> None:
        super().__init__(field, message)
        self.names = names
        """The record fields that the problem is about, if any."""


def _text(max_bytes: int) -> AfterValidator:
    def check(text: str) -> str:
        if problem := text_problem(text, max_bytes):
            raise ValueError(problem)
        return text

    return AfterValidator(check)


Text = Annotated[str, Field(strict=True)]
Name = Annotated[Text, _text(MAX_SUBJECT_BYTES), text_schema(MAX_SUBJECT_BYTES)]
RecordId = Annotated[Text, _text(MAX_ID_BYTES), text_schema(MAX_ID_BYTES)]


def _not_empty(ids: object) -> object:
    if isinstance(ids, list) and not ids:
        raise ValueError("must name at least one record")
    return ids


class Notify(BaseModel):
    """The address that gets the events of the job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[Text, _text(MAX_ADDRESS_BYTES), Field(pattern=ADDRESS)] = Field(
        description="An HTTPS address on the public internet. Fairlane sends it signed POSTs."
    )


class JobRequest(BaseModel):
    """The body of ``POST /v1/jobs``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: Name
    subject: Name = Field(
        description="The name of what the job works on. A tenant never has two active jobs with "
        "the same subject."
    )
    params: dict[str, Any] = Field(default_factory=dict)
    ids: (
        Annotated[
            list[RecordId],
            Field(fail_fast=True, json_schema_extra={"minItems": 1}),
            BeforeValidator(_not_empty),
        ]
        | None
    ) = Field(
        default=None,
        description="The records' ids, as exact strings. Repeated ids are dropped and counted.",
    )
    upload_id: Annotated[Text, Field(pattern=UPLOAD_ID)] | None = Field(
        default=None, description="The id of a file of ids that was uploaded by POST /v1/uploads."
    )
    query: Filter | None = Field(default=None, description="The filter that selects the records.")
    traversal: Asked | None = Field(
        default=None, description="How the job walks the records of a query; auto when left out."
    )
    tolerated_failure_percent: int = Field(
        default=100,
        ge=0,
        le=100,
        strict=True,
        description="The job fails when a larger share of its records has failed.",
    )
    labels: dict[Name, Name] = Field(default_factory=dict, max_length=MAX_LABELS)
    notify: Notify | None = Field(
        default=None, description="Where Fairlane sends the events of the job."
    )


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A request whose operation and parameters are known to be good."""

    operation: str
    subject: str
    params: str
    """Exact JSON."""
    ids: tuple[str, ...] | None
    duplicates: int
    upload_id: str | None = None
    query: Filter | None = None
    traversal: Asked = Asked.AUTO
    tolerated_failure_percent: int
    labels: Mapping[str, str]
    notify: str | None = None


def parse(body: str) -> dict[str, Any]:
    """The body's JSON object with exact numbers. Raises BadRequest."""
    try:
        content = exact_loads(body, nested=MAX_DEPTH)
    except ValueError as error:
        raise BadRequest("", f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest("", "the body must be a JSON object")
    return content


def accept(content: Mapping[str, Any], operations: Operations, *, max_ids: int) -> Accepted:
    """Check a request against its model and its operation's. Raises BadRequest, TooLarge."""
    listed = content.get("ids")
    if isinstance(listed, list) and len(listed) > max_ids:
        raise TooLarge(
            "ids",
            f"the request names {len(listed)} ids, at most {max_ids} are allowed; {UPLOAD_INSTEAD}",
        )
    try:
        request = JobRequest.model_validate(content)
    except ValidationError as error:
        raise bad("", error) from error
    _check_selection(request, content)
    operation = operations.get(request.operation)
    if operation is None:
        known = ", ".join(sorted(operations))
        raise BadRequest("operation", f"there is no such operation; there are: {known}")
    _check_parameters(operation, request.params)
    params = exact_json(request.params)
    if len(params) > MAX_PARAMS_BYTES:
        raise TooLarge(
            "params", f"has {len(params)} bytes as JSON, at most {MAX_PARAMS_BYTES} are allowed"
        )
    ids = request.ids
    unique = None if ids is None else tuple(dict.fromkeys(ids))
    return Accepted(
        operation=request.operation,
        subject=request.subject,
        params=params,
        ids=unique,
        duplicates=len(ids or ()) - len(unique or ()),
        upload_id=request.upload_id,
        query=request.query,
        traversal=request.traversal or Asked.AUTO,
        tolerated_failure_percent=request.tolerated_failure_percent,
        labels=request.labels,
        notify=request.notify.url if request.notify else None,
    )


def _check_selection(request: JobRequest, content: Mapping[str, Any]) -> None:
    """Exactly one way of selecting, and nothing about it left to guess."""
    given = [name for name in SELECTIONS if name in content]
    for name in (*given, *(["traversal"] if "traversal" in content else [])):
        if content[name] is None:
            raise BadRequest(name, "must not be null")
    if len(given) != 1:
        one = f"name exactly one of {', '.join(SELECTIONS)}"
        raise BadRequest(given[1] if given else "ids", one)
    if request.query is None:
        if request.traversal is not None:
            raise BadRequest("traversal", "goes with a query, and the request has none")
        return
    size = len(request.query.to_json())
    if size > MAX_QUERY_BYTES:
        raise TooLarge("query", f"has {size} bytes as JSON, at most {MAX_QUERY_BYTES} are allowed")


def _check_parameters(operation: Operation, params: Mapping[str, Any]) -> None:
    try:
        operation.parameters.model_validate(params)
    except ValidationError as error:
        raise bad("params", error) from error


def bad(prefix: str, error: ValidationError) -> BadRequest:
    """The first thing wrong; prefix: the path of what was checked."""
    problem = error.errors()[0]
    path = prefix
    for part in problem["loc"]:
        if part in TAGS:
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return BadRequest(path[:MAX_PATH], problem["msg"].removeprefix("Value error, "))
