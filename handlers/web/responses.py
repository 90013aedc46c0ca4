"""Answers to requests, as API Gateway takes them."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ..jobs.words.exact_json import exact_json

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON: Final = "application/json"


@dataclass(frozen=True)
class Response:
    status: HTTPStatus
    headers: Mapping[str, str]
    body: str = ""

    def result(self, *, without_body: bool = False) -> dict[str, Any]:
        """What the function of a REST API's proxy integration returns."""
        return {
            "statusCode": self.status.value,
            "multiValueHeaders": {name: [value] for name, value in self.headers.items()},
            "body": "" if without_body else self.body,
            "isBase64Encoded": False,
        }


def answer(
    status: HTTPStatus,
    body: Mapping[str, Any],
    request_id: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """body: its numbers are int or Decimal."""
    return raw(status, exact_json(body), request_id, headers)


def raw(
    status: HTTPStatus,
    body: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    *,
    kind: str = JSON,
) -> Response:
    """body: JSON text. kind: its media type."""
    said = {**(headers or {}), "X-Request-Id": request_id, "Content-Type": kind}
    return Response(status, said, body)


def not_modified(request_id: str, headers: Mapping[str, str]) -> Response:
    return Response(HTTPStatus.NOT_MODIFIED, {**headers, "X-Request-Id": request_id})
