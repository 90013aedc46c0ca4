"""The request for a job, checked at the edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..words.errors import FairlaneError
from ..words.exact_json import (
    NotJson,
    RepeatedName,
    exact_json,
    exact_loads,
    longer_than,
)
from ..words.filters import Filter
from ..words.limits import (
    MAX_ID_BYTES,
    MAX_PARAMS_BYTES,
    MAX_QUERY_BYTES,
    MAX_SUBJECT_BYTES,
    MAX_TABLES,
)
from ..words.operation import Operations
from ..words.table import TABLES, Table, TableNotRead
from ..words.text_rules import text_problem, text_schema
from ..words.upload import UPLOAD_ID
from .field_errors import FieldError, Path, field_errors
from .traversal import Asked

SELECTIONS: Final = ("ids", "upload_id", "query")
UPLOAD_INSTEAD: Final = "send more ids as a file, by POST /v1/uploads"
MAX_LABELS: Final = 10
MAX_ADDRESS_BYTES: Final = 2048
ADDRESS: Final = r"^https?://[^/@?#\s]+([/?]\S*)?$"
"""Without a user, and without a fragment, which would never be sent."""
MAX_DEPTH: Final = 32
MAX_ERRORS: Final = 20
"""Errors of one body that are named."""


class BadRequest(FairlaneError):
    """The request cannot be accepted as it is."""

    def __init__(
        self, field: str, message: str, errors: Sequence[FieldError] | None = None
    ) -> None:
        """errors: everything that is wrong, when it is not this alone."""
        super().__init__(message)
        self.field = field
        """The path of the wrong part, such as ``ids[3]`` or ``params.field``; "" is the whole
        body."""
        path = tuple(field.split(".")) if field else ()
        self.errors = tuple(errors or [FieldError(path, message)])[:MAX_ERRORS]


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
    stop_when_hopeless: bool = Field(
        default=True,
        strict=True,
        description="The job ends as soon as more of its records have failed than it tolerates, "
        "whatever would become of the rest; false: it tries every record first.",
    )
    labels: dict[Name, Name] = Field(default_factory=dict, max_length=MAX_LABELS)
    notify: Notify | None = Field(
        default=None, description="Where Fairlane sends the events of the job."
    )


Model = TypeVar("Model", bound=BaseModel)


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
    stop_when_hopeless: bool = True
    labels: Mapping[str, str]
    notify: str | None = None
    tables: frozenset[str] = frozenset()
    """The uploads that the parameters name as lookup tables."""


def parse(body: str) -> dict[str, Any]:
    """The body's JSON object with exact numbers. Raises BadRequest."""
    try:
        content = exact_loads(body, nested=MAX_DEPTH)
    except RepeatedName as error:
        raise bad([FieldError(error.path, "is given more than once")]) from error
    except NotJson as error:
        raise BadRequest("", f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest("", "the body must be a JSON object")
    return content


def accept(content: Mapping[str, Any], operations: Operations, *, max_ids: int) -> Accepted:
    """Check a request against its model and its operation's. Raises BadRequest, TooLarge."""
    _check_sizes(content, max_ids)
    request, errors = _modelled(JobRequest, content, ())
    tables: set[str] = set()
    errors += [*_selection_errors(content), *_operation_errors(content, operations, tables)]
    if request is None or errors:
        raise bad(_in_order(errors))
    _check_query_size(request.query)
    params = exact_json(request.params)
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
        stop_when_hopeless=request.stop_when_hopeless,
        labels=request.labels,
        notify=request.notify.url if request.notify else None,
        tables=frozenset(tables),
    )


# --- sizes ------------------------------------------------------------------------------------


def _check_sizes(content: Mapping[str, Any], max_ids: int) -> None:
    """Before anything is checked one by one, which takes time. Raises TooLarge."""
    listed = content.get("ids")
    if isinstance(listed, list) and len(listed) > max_ids:
        raise TooLarge(
            "ids",
            f"the request names {len(listed)} ids, at most {max_ids} are allowed; {UPLOAD_INSTEAD}",
        )
    params = content.get("params")
    if isinstance(params, dict) and longer_than(params, MAX_PARAMS_BYTES):
        raise TooLarge("params", f"has more bytes as JSON than the {MAX_PARAMS_BYTES} allowed")


def _check_query_size(query: Filter | None) -> None:
    size = 0 if query is None else len(query.to_json())
    if size > MAX_QUERY_BYTES:
        raise TooLarge("query", f"has {size} bytes as JSON, at most {MAX_QUERY_BYTES} are allowed")


# --- everything that is wrong -----------------------------------------------------------------


def bad(errors: Sequence[FieldError]) -> BadRequest:
    """The refusal of a body; it names the first error, and has all of them."""
    return BadRequest(errors[0].field, errors[0].detail, errors)


def checked(model: type[Model], content: Mapping[str, Any]) -> Model:
    """A body as its model. Raises BadRequest."""
    made, errors = _modelled(model, content, ())
    if made is None:
        raise bad(errors)
    return made


def _modelled(
    model: type[Model],
    content: Mapping[str, Any],
    prefix: Path,
    context: Mapping[str, object] | None = None,
) -> tuple[Model | None, list[FieldError]]:
    try:
        return model.model_validate(content, context=context), []
    except ValidationError as error:
        return None, list(field_errors(error, prefix))


def _selection_errors(content: Mapping[str, Any]) -> Iterator[FieldError]:
    """Exactly one way of selecting, and nothing about it left to guess."""
    given = [name for name in SELECTIONS if name in content]
    for name in (*given, *(["traversal"] if "traversal" in content else [])):
        if content[name] is None:
            yield FieldError((name,), "must not be null")
    if len(given) != 1:
        one = f"name exactly one of {', '.join(SELECTIONS)}"
        yield FieldError((given[1] if given else "ids",), one)
    elif "query" not in given and content.get("traversal") is not None:
        yield FieldError(("traversal",), "goes with a query, and the request has none")


def _operation_errors(
    content: Mapping[str, Any], operations: Operations, tables: set[str]
) -> Sequence[FieldError]:
    """Of an operation that exists: what is wrong with its parameters. tables: gets the uploads that
    they name as lookup tables. Raises Unprocessable when the operation cannot be asked for."""
    name, params = content.get("operation"), content.get("params", {})
    if not isinstance(name, str) or not name:
        return ()
    operation = operations.get(name)
    if operation is None:
        known = ", ".join(sorted(operations))
        return [FieldError(("operation",), f"there is no such operation; there are: {known}")]
    if not isinstance(params, dict):
        return ()

    def noted(upload_id: str) -> Table:
        tables.add(upload_id)
        return Table(None)

    try:
        errors = _modelled(operation.parameters, params, ("params",), {TABLES: noted})[1]
    except TableNotRead as error:
        looks = error.told(f"the check of the parameters of {name!r}")
        raise Unprocessable("operation", looks) from error
    if len(tables) > MAX_TABLES:
        many = f"name {len(tables)} lookup tables, at most {MAX_TABLES} are allowed"
        return [*errors, FieldError(("params",), many)]
    return errors


def _in_order(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """By the fields of a request, the same thing only once."""
    fields = list(JobRequest.model_fields)

    def place(error: FieldError) -> int:
        top = error.path[0] if error.path else ""
        return fields.index(str(top)) if top in fields else len(fields)

    return sorted(dict.fromkeys(errors), key=place)
