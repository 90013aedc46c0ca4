"""The event API Gateway hands to a function for a REST API's proxy integration, at its largest."""

from __future__ import annotations

import json
from typing import Any, Final

from handlers.jobs.words.limits import GATEWAY_HEADERS, MAX_TENANT_BYTES

ROUTE: Final = "/v1/jobs"
REQUEST_LINE: Final = f"POST /live{ROUTE} HTTP/1.1"
FILLER: Final = "x-anything"
"""Headers up to all that API Gateway takes are put into this one."""


def event_bytes(body: str) -> int:
    """Of the event as JSON, with the longest way of writing what is not ASCII."""
    return len(json.dumps(rest_event(body), separators=(",", ":")))


def rest_event(body: str, *, header_bytes: int = GATEWAY_HEADERS) -> dict[str, Any]:
    """header_bytes: of request line and headers together; quotes, which take two bytes each."""
    sent = {
        "Accept": "*/*",
        "Content-Type": "application/json",
        # Of one width, so that events of different bodies differ by their bodies only.
        "Content-Length": str(len(body.encode(errors="surrogatepass"))).zfill(8),
        "Host": "abcdef1234.execute-api.eu-west-1.amazonaws.com",
        "User-Agent": "fairlane payload-budget",
        "X-Amzn-Trace-Id": "Root=1-68a1b2c3-0123456789abcdef01234567",
        "X-Forwarded-For": "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff, 203.0.113.255",
        "X-Forwarded-Port": "443",
        "X-Forwarded-Proto": "https",
    }
    used = len(REQUEST_LINE) + sum(len(name) + len(value) for name, value in sent.items())
    sent[FILLER] = '"' * max(0, header_bytes - used - len(FILLER))
    return {
        "resource": "/{proxy+}",
        "path": ROUTE,
        "httpMethod": "POST",
        "headers": sent,
        "multiValueHeaders": {name: [value] for name, value in sent.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": ROUTE.removeprefix("/")},
        "stageVariables": None,
        "requestContext": _context(),
        "body": body,
        "isBase64Encoded": False,
    }


def _context() -> dict[str, Any]:
    return {
        "accountId": "123456789012",
        "apiId": "abcdef1234",
        "authorizer": {
            "tenant": '"' * MAX_TENANT_BYTES,
            "principalId": '"' * MAX_TENANT_BYTES,
            "integrationLatency": 1234,
        },
        "domainName": "abcdef1234.execute-api.eu-west-1.amazonaws.com",
        "domainPrefix": "abcdef1234",
        "extendedRequestId": "AbCdEfGhIjKlMnO=",
        "httpMethod": "POST",
        "identity": {
            "accessKey": None,
            "accountId": None,
            "caller": None,
            "cognitoAuthenticationProvider": None,
            "cognitoAuthenticationType": None,
            "cognitoIdentityId": None,
            "cognitoIdentityPoolId": None,
            "principalOrgId": None,
            "sourceIp": "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "user": None,
            "userAgent": "fairlane payload-budget",
            "userArn": None,
        },
        "path": f"/live{ROUTE}",
        "protocol": "HTTP/1.1",
        "requestId": "6e0f6d2c-8c1e-4c4f-9a55-5f3e0b7a1111",
        "requestTime": "29/Nov/2026:10:11:12 +0000",
        "requestTimeEpoch": 1_795_947_072_000,
        "resourceId": "abc123",
        "resourcePath": "/{proxy+}",
        "stage": "live",
    }
