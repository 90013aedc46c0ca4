"""One request and its answer: who asks, what is sent again and when, and what an answer means."""

from __future__ import annotations

import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import urllib3
from pydantic import BaseModel, ValidationError

from .problems import (
    ApiProblem,
    BadAddress,
    InProgress,
    NotConnected,
    Throttled,
    Unavailable,
    Unreachable,
    Unsettled,
    problem_of,
)

Model = TypeVar("Model", bound=BaseModel)


class Signer(ABC):
    """Says who calls by headers of its own, such as an IAM signature, in place of a token."""

    @abstractmethod
    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """For one request, each time that it is sent. url: with its query."""


Token: TypeAlias = str | Callable[[], str] | Signer
"""A callable is asked for a token before the first request, and again when one is refused."""

TIMEOUT_S: Final = 60.0
TRIES: Final = 4
FIRST_WAIT_S: Final = 0.2
"""Doubled with every try, and jittered; a Retry-After goes before it."""
LONGEST_WAIT_S: Final = 30.0
"""Of a Retry-After too: a longer one is the caller's to wait for."""
NO_TOKEN: Final = 401
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503
FIRST_ERROR: Final = 400
OK: Final = range(200, 300)
_UNSENT: Final = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
)


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    repeatable: bool = False
    """Done twice it is done once: it may be sent again when its fate is unknown."""


@dataclass(frozen=True)
class Reply:
    status: int
    content: Any
    """The decoded JSON; None when it is none."""


class Transport:
    """Sends calls to the API at ``url`` as the tenant of the token. Safe between threads."""

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises BadAddress."""
        self.url = checked(url)
        self._token = token
        self._known: str | None = None
        self.now = now
        self.sleep = sleep
        self._pool = urllib3.PoolManager(maxsize=8, timeout=TIMEOUT_S, retries=False)

    def ask(self, kind: type[Model], call: Call) -> tuple[int, Model]:
        """The status and the answer. Raises ApiProblem, Unreachable, BadAddress."""
        reply = self.send(call)
        try:
            return reply.status, kind.model_validate(reply.content)
        except ValidationError as error:
            raise Unreachable(f"{self.url} does not answer like Fairlane's API: {error}") from error

    def send(self, call: Call) -> Reply:
        """Raises ApiProblem, Unreachable, BadAddress."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(call)
            except (ApiProblem, Unreachable) as error:
                wait = pause(error, attempt)
                if attempt == TRIES or wait is None or not again(error, call):
                    raise
                self.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        self._pool.clear()

    # --- inside ------------------------------------------------------------------------------

    def _once(self, call: Call) -> Reply:
        """A token that a callable made is replaced once when it is refused, so that one that has
        run out is never seen."""
        reply = self._request(call)
        if reply.status == NO_TOKEN and callable(self._token):
            self._known = None
            reply = self._request(call)
        if reply.status >= FIRST_ERROR:
            raise problem_of(reply.status, _decoded(reply.data), reply.headers.get("Retry-After"))
        if reply.status not in OK:
            raise Unreachable(f"{self.url} does not answer like Fairlane's API: {reply.status}")
        return Reply(reply.status, _decoded(reply.data))

    def _request(self, call: Call) -> urllib3.BaseHTTPResponse:
        headers = {
            **self._identity(call),
            "content-type": "application/json",
            **(call.headers or {}),
        }
        try:
            return self._pool.request(
                call.method, self.url + call.path, body=call.body, headers=headers
            )
        except urllib3.exceptions.HTTPError as error:
            unsent = isinstance(error, _UNSENT)
            kind = NotConnected if unsent else Unreachable
            raise kind(f"the API at {self.url} did not answer: {error}") from error

    def _identity(self, call: Call) -> Mapping[str, str]:
        if isinstance(self._token, Signer):
            return self._token.headers(call.method, self.url + call.path, call.body or b"")
        if isinstance(self._token, str):
            token = _sendable(self._token)
        else:
            # Known: what the callable made, until it is refused.
            token = self._known = self._known or _sendable(self._token())
        return {"authorization": f"Bearer {token}"}


def checked(url: str) -> str:
    """The address without a slash at its end. Raises BadAddress for one that would send the token
    in clear text over a network."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadAddress(f"the address {url!r} has no scheme: write https://{url.lstrip('/:')}")
    if parts.scheme == "http" and not _loopback(parts.hostname):
        raise BadAddress(
            f"the address {url!r} would send the token in clear text: write https:// "
            "(http:// is for this machine only)"
        )
    return url.rstrip("/")


def again(error: ApiProblem | Unreachable, call: Call) -> bool:
    """Whether sending the call again can do no harm."""
    if isinstance(error, Throttled | Unavailable | NotConnected):
        return True  # nothing was done
    if not isinstance(error, ApiProblem) or isinstance(error, Unsettled | InProgress):
        return call.repeatable
    return error.status == TOO_MANY or (error.status == UNAVAILABLE and call.repeatable)


def pause(error: ApiProblem | Unreachable, attempt: int) -> float | None:
    """Seconds before the next try, counted from 1; None: longer than it is worth to wait here."""
    named = error.retry_after if isinstance(error, ApiProblem) else None
    if named is not None:
        return named if named <= LONGEST_WAIT_S else None
    most = min(FIRST_WAIT_S * 2.0 ** (attempt - 1), LONGEST_WAIT_S)
    return most * random.uniform(0.5, 1)  # noqa: S311  jitter, no secret


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _sendable(token: str) -> str:
    """Without showing it in the message."""
    if not (token and token.isascii() and token.isprintable()):
        raise BadAddress("the token must be printable ASCII without line ends")
    return token


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
