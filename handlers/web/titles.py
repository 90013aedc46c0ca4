"""What the statuses of answers are called: the names of RFC 9110 (429: RFC 6585), and the words
that go with a 401.

``HTTPStatus.phrase`` is not asked: its words are those of the interpreter's version, and what is
committed, deployed and served is the same with every one.
"""

from __future__ import annotations

from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

TITLES: Final[Mapping[HTTPStatus, str]] = MappingProxyType(
    {
        HTTPStatus.OK: "OK",
        HTTPStatus.CREATED: "Created",
        HTTPStatus.ACCEPTED: "Accepted",
        HTTPStatus.NOT_MODIFIED: "Not Modified",
        HTTPStatus.BAD_REQUEST: "Bad Request",
        HTTPStatus.UNAUTHORIZED: "Unauthorized",
        HTTPStatus.FORBIDDEN: "Forbidden",
        HTTPStatus.NOT_FOUND: "Not Found",
        HTTPStatus.METHOD_NOT_ALLOWED: "Method Not Allowed",
        HTTPStatus.CONFLICT: "Conflict",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "Unsupported Media Type",
        HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Content",
        HTTPStatus.TOO_MANY_REQUESTS: "Too Many Requests",
        HTTPStatus.INTERNAL_SERVER_ERROR: "Internal Server Error",
        HTTPStatus.SERVICE_UNAVAILABLE: "Service Unavailable",
        HTTPStatus.GATEWAY_TIMEOUT: "Gateway Timeout",
    }
)
"""Of every status that an answer can have; a test holds it against the code."""

CHALLENGE: Final = 'Bearer realm="fairlane"'
"""The WWW-Authenticate of an answer to a request without a token (RFC 6750)."""
