"""What a client may ask for, checked at the edge."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
)

from .errors import FairlaneError
from .limits import MAX_ID_BYTES, MAX_PARAMS_BYTES, MAX_SUBJECT_BYTES
from .model import Operation, Operations

MAX_LABELS: Final = 10
MAX_DEPTH: Final = 32
MAX_PATH: Final = 200
"""Characters of the path that names what is wrong: a client may call a field anything."""


class BadRequest(FairlaneError):
    """The request cannot be accepted as it is."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        """Where it is wrong, such as ``ids[3]`` or ``params.field``; "" is the whole body."""


class TooLarge(BadRequest):
    """The request is over a size limit."""


def bad_text(text: str, max_bytes: int) -> str | None:
    """What is wrong with a name or id that has to survive every layer; None when nothing is."""
    if not text:
        return "must not be empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "must not hold half of a surrogate pair"
    if size > max_bytes:
        return f"is {size} bytes as UTF-8, at most {max_bytes} are allowed"
    if not text.isprintable() and any(unicodedata.category(c) == "Cc" for c in text):
        return "must not hold control characters"
    return None


def _text(max_bytes: int) -> AfterValidator:
    def check(text: str) -> str:
        if problem := bad_text(text, max_bytes):
            raise ValueError(problem)
        return text

    return AfterValidator(check)


Text = Annotated[str, Field(strict=True)]
Name = Annotated[Text, _text(MAX_SUBJECT_BYTES)]
RecordId = Annotated[Text, _text(MAX_ID_BYTES)]


def _not_empty(ids: object) -> object:
    if isinstance(ids, list) and not ids:
        raise ValueError("must name at least one record")
    return ids


class JobRequest(BaseModel):
    """The body of ``POST /v1/jobs``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: Name
    subject: Name = Field(description="What two jobs must not work on at the same time.")
    params: dict[str, Any] = Field(default_factory=dict)
    ids: Annotated[list[RecordId], FailFast(), BeforeValidator(_not_empty)] = Field(
        description="The records, as exact strings; repeated ids are dropped and counted."
    )
    tolerated_failure_percent: int = Field(default=100, ge=0, le=100, strict=True)
    labels: dict[Name, Name] = Field(default_factory=dict, max_length=MAX_LABELS)


class Accepted(BaseModel):
    """A request whose operation and parameters are known to be good."""

    model_config = ConfigDict(frozen=True)

    operation: str
    subject: str
    params: str
    """Exact JSON."""
    ids: tuple[str, ...]
    duplicates: int
    tolerated_failure_percent: int
    labels: Mapping[str, str]


def parse(body: str) -> dict[str, Any]:
    """The body's JSON object with exact numbers. Raises BadRequest."""
    try:
        content = json.loads(body, parse_float=Decimal, parse_constant=_no_constant)
        _check_depth(content)
    except InvalidOperation as error:
        raise BadRequest("", "the body holds a number no record can hold") from error
    except (ValueError, RecursionError) as error:
        raise BadRequest("", f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest("", "the body must be a JSON object")
    return content


def accept(content: Mapping[str, Any], operations: Operations, *, max_ids: int) -> Accepted:
    """Check a request against its model and its operation's. Raises BadRequest, TooLarge."""
    ids = content.get("ids")
    if isinstance(ids, list) and len(ids) > max_ids:
        raise TooLarge("ids", f"{len(ids)} ids, at most {max_ids} fit in a request")
    try:
        request = JobRequest.model_validate(content)
    except ValidationError as error:
        raise _bad("", error) from error
    operation = operations.get(request.operation)
    if operation is None:
        known = ", ".join(sorted(operations))
        raise BadRequest("operation", f"unknown operation; there are: {known}")
    _check_parameters(operation, request.params)
    params = exact_json(request.params)
    if len(params) > MAX_PARAMS_BYTES:
        raise TooLarge(
            "params", f"take {len(params)} bytes as JSON, at most {MAX_PARAMS_BYTES} are allowed"
        )
    unique = tuple(dict.fromkeys(request.ids))
    return Accepted(
        operation=request.operation,
        subject=request.subject,
        params=params,
        ids=unique,
        duplicates=len(request.ids) - len(unique),
        tolerated_failure_percent=request.tolerated_failure_percent,
        labels=request.labels,
    )


def _check_parameters(operation: Operation, params: Mapping[str, Any]) -> None:
    try:
        operation.parameters.model_validate(params)
    except ValidationError as error:
        raise _bad("params", error) from error


def exact_json(value: object) -> str:
    """Compact JSON of plain values, with Decimals as the numbers they are."""
    match value:
        case Decimal():
            return str(value)
        case Mapping():
            pairs = (f"{json.dumps(str(k))}:{exact_json(v)}" for k, v in value.items())
            return "{" + ",".join(pairs) + "}"
        case str() | bool() | int() | None:
            return json.dumps(value)
        case Sequence():
            return "[" + ",".join(exact_json(part) for part in value) + "]"
        case _:
            raise TypeError(f"no exact JSON for {type(value).__name__}")


def _bad(prefix: str, error: ValidationError) -> BadRequest:
    problem = error.errors()[0]
    path = prefix
    for part in problem["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return BadRequest(path[:MAX_PATH], problem["msg"].removeprefix("Value error, "))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_depth(value: object, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        if isinstance(part, dict | list):
            _check_depth(part, depth + 1)
