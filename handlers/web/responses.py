"""Answers that are not problems."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.event_handler import Response

from ..jobs.words.exact_json import exact_json

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON: Final = "application/json"


def answer(
    status: HTTPStatus,
    body: Mapping[str, Any],
    request_id: str,
    headers: Mapping[str, str] | None = None,
) -> Response[str]:
    """body: its numbers are int or Decimal."""
    return raw(status, exact_json(body), request_id, headers)


def raw(
    status: HTTPStatus, body: str, request_id: str, headers: Mapping[str, str] | None = None
) -> Response[str]:
    """body: JSON text."""
    return Response(
        status_code=status.value,
        content_type=JSON,
        body=body,
        headers={**(headers or {}), "X-Request-Id": request_id},
    )


def not_modified(request_id: str, headers: Mapping[str, str]) -> Response[str]:
    return Response(
        status_code=HTTPStatus.NOT_MODIFIED.value,
        body="",
        headers={**headers, "X-Request-Id": request_id},
    )
