"""Requests of the sizes and texts that web firewalls refuse, and who answered each.

Nothing is created by them: jobs are only validated, and what is sent elsewhere is no good request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import urllib3
from urllib3.util import SKIP_HEADER

from handlers.jobs.words.limits import MAX_BODY_BYTES, WAF_BODY_BYTES, WAF_BODY_RULE

Identify: TypeAlias = Callable[[str, str, bytes], Mapping[str, str]]
"""The headers that say who calls, for a method, an address and a body."""
JOBS: Final = "/v1/jobs?validate_only=true"
ELSEWHERE: Final = "/v1/uploads"
SIZES: Final = (7_900, 8_300, 70_000, 1_000_000)
FREE_TEXT: Final = (
    "see http://203.0.113.7/price.html",
    '<p onclick="buy()">Sale</p><script>1</script>',
    "../images/logo.png",
    "http://169.254.169.254/latest",
)
TIMEOUT_S: Final = 60


class Who(StrEnum):
    """Who answered, as far as the answer shows."""

    API = "the API"
    WAF = "the web firewall"
    GATEWAY = "API Gateway"
    NOBODY_SAID = "somebody who did not say"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Seen:
    status: int
    """0: no answer."""
    who: Who
    why: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.status or 'no answer'} by {self.who}{why}"


@dataclass(frozen=True)
class Probe:
    """A request, and the answer it should get."""

    what: str
    path: str
    body: str
    status: HTTPStatus
    who: Who
    headers: Mapping[str, str] = field(default_factory=dict)


def probes() -> Iterator[Probe]:
    yield from _on_jobs()
    yield from _elsewhere()


def _on_jobs() -> Iterator[Probe]:
    def job(what: str, body: str, *, who: Who = Who.API, status: int = 200, **more: Any) -> Probe:
        return Probe(f"POST /v1/jobs, {what}", JOBS, body, HTTPStatus(status), who, **more)

    for size in SIZES:
        yield job(f"{size} bytes", job_body(size))
    for text in FREE_TEXT:
        yield job(f"a value with {text}", job_body(7_900, text))
        yield job(f"{SIZES[-1]} bytes with {text}", job_body(SIZES[-1], text))
    yield job("no User-Agent", job_body(500), headers={"user-agent": SKIP_HEADER})
    yield job(f"{MAX_BODY_BYTES} bytes, the most there may be", job_body(MAX_BODY_BYTES))
    yield job(f"{MAX_BODY_BYTES + 1} bytes", job_body(MAX_BODY_BYTES + 1), status=413)
    yield job(f"{WAF_BODY_BYTES + 1} bytes", job_body(WAF_BODY_BYTES + 1), status=413, who=Who.WAF)


def _elsewhere() -> Iterator[Probe]:
    def other(what: str, body: str, *, who: Who, status: int, **more: Any) -> Probe:
        return Probe(f"POST {ELSEWHERE}, {what}", ELSEWHERE, body, HTTPStatus(status), who, **more)

    for size in SIZES:
        large = size > WAF_BODY_RULE
        yield other(
            f"{size} bytes",
            _padded({"format": "none"}, size),
            who=Who.WAF if large else Who.API,
            status=413 if large else 400,
        )
    for text in FREE_TEXT:
        body = _padded({"format": "none", "note": text}, 500)
        yield other(f"a value with {text}", body, who=Who.WAF, status=403)
    yield other(
        "no User-Agent",
        _padded({"format": "none"}, 100),
        who=Who.API,
        status=400,
        headers={"user-agent": SKIP_HEADER},
    )


def job_body(size: int, text: str = "") -> str:
    """A good request of exactly so many bytes: ids, and a free-text value."""
    content: dict[str, Any] = {
        "operation": "set_fields",
        "subject": "verify-waf",
        "params": {"fields": {"note": text or "plain"}},
        "ids": [],
    }
    room = size - len(json.dumps(content))
    content["ids"] = [f"{n:036}" for n in range(max(1, room // len(json.dumps("0" * 36) + ", ")))]
    return _padded(content, size)


def _padded(content: Mapping[str, Any], size: int) -> str:
    text = json.dumps(content)
    return text + " " * (size - len(text))


# --- what came back ---------------------------------------------------------------------------


def send(pool: urllib3.PoolManager, url: str, probe: Probe, identify: Identify) -> Seen:
    """url: of the API, with its stage and without a slash at its end."""
    body = probe.body.encode()
    headers = {
        **identify("POST", url + probe.path, body),
        "content-type": "application/json",
        "user-agent": "fairlane-verify",
        **probe.headers,
    }
    try:
        answer = pool.request(
            "POST",
            url + probe.path,
            body=body,
            headers=headers,
            timeout=TIMEOUT_S,
            retries=False,
        )
    except urllib3.exceptions.HTTPError as error:
        return Seen(0, Who.NOBODY, type(error).__name__)
    return seen_in(answer.status, answer.headers, answer.data)


def seen_in(status: int, headers: Mapping[str, str], body: bytes) -> Seen:
    """Who wrote this answer: the API marks each of its own, and the stack's firewall its refusals.
    A bare 403 comes from a firewall or gateway whose answers nobody made readable."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    told: Mapping[str, Any] = content if isinstance(content, dict) else {}
    why = str(told.get("detail") or told.get("title") or told.get("message") or "")
    if told.get("answered_by") == "waf":
        return Seen(status, Who.WAF, why)
    if headers.get("X-Request-Id"):
        return Seen(status, Who.API, why if status >= HTTPStatus.BAD_REQUEST else "")
    if str(told.get("instance", "")).startswith("urn:request:"):
        return Seen(status, Who.GATEWAY, why)
    kind = headers.get("Content-Type", "no content type").partition(";")[0]
    return Seen(status, Who.NOBODY_SAID, why or kind)
