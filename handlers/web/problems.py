"""Errors as problem+json (RFC 9457): the one place where they become HTTP."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools.event_handler import Response

from ..jobs.selection.request import BadRequest, TooLarge, Unprocessable
from ..jobs.storage.transaction import Indeterminate
from ..jobs.words.timing import SECOND
from .titles import TITLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.errors import Transient

PROBLEM_JSON: Final = "application/problem+json"


@dataclass
class Problem(Exception):
    """An answer that is not the one the client asked for."""

    status: HTTPStatus
    code: str
    """Stable; clients may switch on it."""
    detail: str
    field: str | None = None
    """Where the request is wrong, such as ``ids[3]``."""
    retry_after: int | None = None
    """Seconds."""
    more: dict[str, object] | None = None
    headers: Mapping[str, str] | None = None

    def response(self, request_id: str) -> Response[str]:
        body: dict[str, object] = {
            "type": f"urn:fairlane:problem:{self.code}",
            "title": TITLES[self.status],
            "status": self.status.value,
            "code": self.code,
            "detail": self.detail,
            **({"field": self.field} if self.field is not None else {}),
            **(self.more or {}),
            "request_id": request_id,
        }
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return Response(
            status_code=self.status.value,
            content_type=PROBLEM_JSON,
            body=json.dumps(body, separators=(",", ":")),
            headers={**headers, **(self.headers or {}), "X-Request-Id": request_id},
        )


def bad_request(field: str, detail: str) -> Problem:
    where = field or "body"
    return Problem(HTTPStatus.BAD_REQUEST, "bad_request", f"{where}: {detail}", field=where)


def refused(error: BadRequest) -> Problem:
    """The answer to a request that cannot be accepted."""
    match error:
        case TooLarge():
            problem = Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", str(error), field=error.field
            )
        case Unprocessable():
            problem = Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "unprocessable",
                str(error),
                field=error.field or None,
                more={"fields": sorted(error.names)} if error.names else None,
            )
        case _:
            problem = bad_request(error.field, str(error))
    errors = [
        {"pointer": each.pointer, "field": each.field or "body", "detail": each.detail}
        for each in error.errors
    ]
    problem.more = {**(problem.more or {}), "errors": errors}
    return problem


def not_found(what: str) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "not_found", what)


def throttled(wait_ms: int) -> Problem:
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "throttled",
        "the tenant sends more requests than it may; nothing was done",
        retry_after=math.ceil(wait_ms / SECOND),
    )


def unavailable(error: Transient) -> Problem:
    if isinstance(error, Indeterminate):
        return Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "unsettled",
            "a dependency's reply was lost, so the request may or may not have taken effect; send "
            "it again, with the same Idempotency-Key if it creates a job",
            retry_after=2,
        )
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        "a dependency did not answer in time; nothing was changed",
        retry_after=2,
    )
