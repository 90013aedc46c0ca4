"""What API Gateway answers by itself, in the same form as the function's problems (RFC 9457).

``$context.error.messageString`` comes with its own quotes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aws_cdk import aws_apigateway as apigateway

from handlers.jobs.words.limits import MAX_BODY_BYTES
from handlers.web.titles import CHALLENGE, TITLES

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = apigateway.ResponseType


@dataclass(frozen=True)
class _Problem:
    id: str
    kind: apigateway.ResponseType
    status: HTTPStatus
    code: str
    detail: str | None = None
    """None: the gateway's own words."""
    more: Mapping[str, str] = field(default_factory=dict)
    challenge: str | None = None
    """The WWW-Authenticate (RFC 6750)."""

    def headers(self) -> dict[str, str]:
        retry = {"Retry-After": "'1'"} if self.status == HTTPStatus.TOO_MANY_REQUESTS else {}
        asked = {} if self.challenge is None else {"WWW-Authenticate": f"'{self.challenge}'"}
        return {
            "Content-Type": "'application/problem+json'",
            "X-Request-Id": "context.requestId",
            **retry,
            **asked,
        }

    def template(self) -> str:
        fixed = {
            "type": f"urn:fairlane:problem:{self.code}",
            "title": TITLES[self.status],
            "status": self.status.value,
            "code": self.code,
            **self.more,
        }
        detail = "$context.error.messageString" if self.detail is None else json.dumps(self.detail)
        return (
            f'{json.dumps(fixed)[:-1]}, "detail": {detail}, "request_id": "$context.requestId", '
            '"instance": "urn:request:$context.requestId"}'
        )


_FORBIDDEN: Final = (HTTPStatus.FORBIDDEN, "forbidden")
_THROTTLED: Final = (HTTPStatus.TOO_MANY_REQUESTS, "throttled")
_TIMEOUT: Final = (HTTPStatus.GATEWAY_TIMEOUT, "gateway_timeout")
_UNAUTHORIZED: Final = (HTTPStatus.UNAUTHORIZED, "unauthorized")
OF_TOKENS: Final = (
    _Problem(
        "Unauthorized",
        Kind.UNAUTHORIZED,
        *_UNAUTHORIZED,
        "the request has no bearer token that can be used: send Authorization: Bearer and a token",
        challenge=CHALLENGE,
    ),
    # Only the authorizer denies, and it says why: see ``handlers.authorizer``.
    _Problem(
        "AccessDenied",
        Kind.ACCESS_DENIED,
        *_UNAUTHORIZED,
        "$context.authorizer.refusal",
        challenge=f'{CHALLENGE}, error="invalid_token"',
    ),
)
OF_SIGNATURES: Final = (
    _Problem("Unauthorized", Kind.UNAUTHORIZED, *_UNAUTHORIZED),
    _Problem("AccessDenied", Kind.ACCESS_DENIED, *_FORBIDDEN),
)
PROBLEMS: Final = (
    _Problem("NoToken", Kind.MISSING_AUTHENTICATION_TOKEN, *_FORBIDDEN),
    _Problem("ExpiredToken", Kind.EXPIRED_TOKEN, *_FORBIDDEN),
    _Problem("InvalidSignature", Kind.INVALID_SIGNATURE, *_FORBIDDEN),
    _Problem("Throttled", Kind.THROTTLED, *_THROTTLED),
    _Problem("QuotaExceeded", Kind.QUOTA_EXCEEDED, *_THROTTLED),
    _Problem(
        "RefusedByWaf",
        Kind.WAF_FILTERED,
        HTTPStatus.FORBIDDEN,
        "refused",
        "the web firewall refused this request",
        {"answered_by": "waf"},
    ),
    _Problem(
        "TooLarge",
        Kind.REQUEST_TOO_LARGE,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too_large",
        f"the body has at most {MAX_BODY_BYTES} bytes; send more ids as a file, "
        "by POST /v1/uploads",
    ),
    _Problem("IntegrationTimeout", Kind.INTEGRATION_TIMEOUT, *_TIMEOUT),
    _Problem("IntegrationFailure", Kind.INTEGRATION_FAILURE, *_TIMEOUT),
    # Their statuses are set, too: the default is one for each kind of error.
    _Problem("ClientErrors", Kind.DEFAULT_4_XX, HTTPStatus.BAD_REQUEST, "bad_request"),
    _Problem("ServerErrors", Kind.DEFAULT_5_XX, HTTPStatus.INTERNAL_SERVER_ERROR, "internal"),
)


def add_problem_answers(rest: apigateway.RestApi, *, tokens: bool) -> None:
    """tokens: callers have tokens, and no signatures of IAM."""
    for problem in (*(OF_TOKENS if tokens else OF_SIGNATURES), *PROBLEMS):
        rest.add_gateway_response(
            problem.id,
            type=problem.kind,
            status_code=str(problem.status.value),
            response_headers=problem.headers(),
            templates={"application/json": problem.template()},
        )
