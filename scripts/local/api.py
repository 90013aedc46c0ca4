"""A small client of the deployed REST API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import urllib3

from .errors import LocalError

ANSWER_S: Final = 60
"""How long a call waits for its answer."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The decoded JSON, or the text when it is none."""


class Api:
    """Calls the API at ``url`` (with its stage, without a slash at the end) as a tenant."""

    def __init__(self, url: str, token_for: Callable[[str], str]) -> None:
        self.url = url
        self._token_for = token_for
        self._tokens: dict[str, str] = {}
        self._pool = urllib3.PoolManager(maxsize=16)

    def call(
        self,
        method: str,
        path: str,
        *,
        tenant: str | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = ANSWER_S,
    ) -> Answer:
        """Send a request with the tenant's token (None: without any) and ``body`` as JSON (bytes
        go as they are). Raises LocalError when nobody answers within ``timeout`` seconds; any
        status is an answer."""
        sent = {"content-type": "application/json", **(headers or {})}
        if tenant is not None:
            sent["authorization"] = f"Bearer {self._token(tenant)}"
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            reply = self._pool.request(
                method, self.url + path, body=content, headers=sent, timeout=timeout, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise LocalError(f"the API at {self.url} did not answer: {error}") from error
        return Answer(
            status=reply.status,
            headers={name.lower(): value for name, value in reply.headers.items()},
            body=_decoded(reply.data),
        )

    def close(self) -> None:
        self._pool.clear()

    def _token(self, tenant: str) -> str:
        return self._tokens.setdefault(tenant, self._token_for(tenant))


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
