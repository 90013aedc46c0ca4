"""A webhook: an HTTPS POST per chunk, signed, and with the same key whenever it is sent."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError

from ..jobs.words.effect import Delivered
from ..jobs.words.errors import Transient
from ..jobs.words.limits import MAX_REASON
from .addresses import Resolve, addresses, resolve
from .notice import notice
from .retry_after import retry_after_ms

if TYPE_CHECKING:
    import ssl

    from ..jobs.words.effect import Batch
    from ..jobs.words.ports import Runtime

CONNECT_TIMEOUT: Final = 3.0
READ_TIMEOUT: Final = 10.0
TOTAL_TIMEOUT: Final = 12.0
MAX_REPLY: Final = 2048
"""Bytes read of an answer; only its status counts."""
FOR_GOOD: Final = frozenset({400, 413, 422})
"""Refusals of what was sent. Every other status but a 2xx speaks of the address, the secret or the
moment, and an operator or time can mend that."""
VERSION: Final = "v1"


class Webhook:
    """``Sink`` that POSTs a notice to one address.

    secret: called before each delivery; raises Transient when it can't be read. loopback: allow
    http, and loopback as the only address that is not public. trust: used in place of the system's.
    total_timeout: seconds for one whole answer.
    """

    def __init__(
        self,
        url: str,
        secret: Callable[[], bytes],
        runtime: Runtime,
        *,
        loopback: bool = False,
        ask: Resolve = resolve,
        trust: ssl.SSLContext | None = None,
        total_timeout: float = TOTAL_TIMEOUT,
    ) -> None:
        self._url = urlsplit(url)
        self._secret = secret
        self._runtime = runtime
        self._loopback = loopback
        self._ask = ask
        self._total = total_timeout
        self._pool = lru_cache(maxsize=8)(_Pools(self._url, trust).make)

    def deliver(self, batch: Batch) -> Delivered:
        why = self.send(batch.key, notice(batch))
        return Delivered(refused={each.id: why for each in batch.records} if why else {})

    def send(self, key: str, text: str) -> str | None:
        """POST a text; returns why it was refused for good, if it was. Raises Transient."""
        body = text.encode()
        reply = self._post(body, self._headers(key, body))
        status = reply.status
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return None
        why = f"answered {status}: {reply.text}"[:MAX_REASON].rstrip(": ")
        if status in FOR_GOOD:
            return why
        # A redirect, too: its target was not checked, and the signature is not for it.
        asked = retry_after_ms(reply.retry_after, self._runtime.now())
        raise Transient(why, retry_after_ms=asked)

    def _headers(self, key: str, body: bytes) -> dict[str, str]:
        timestamp = str(self._runtime.now() // 1000)
        return {
            "Host": self._url.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "User-Agent": "fairlane",
            "Idempotency-Key": key,
            "Fairlane-Timestamp": timestamp,
            "Fairlane-Signature": signature(self._secret(), timestamp, body),
        }

    def _post(self, body: bytes, headers: dict[str, str]) -> _Reply:
        """Raises Transient when there is no answer."""
        over = threading.Event()
        try:
            return _within(self._total, partial(self._try_all, body, headers, over))
        finally:
            over.set()

    def _try_all(self, body: bytes, headers: dict[str, str], over: threading.Event) -> _Reply:
        """The reply of the first address that can be reached. The time is that of all addresses
        together, with their look-up: nothing is sent once it is over. Raises Transient."""
        host, port = self._url.hostname or "", _port(self._url)
        problem: Exception | None = None
        for address in addresses(host, port, self._ask, loopback=self._loopback):
            if over.is_set():
                break
            try:
                return self._send(address, body, headers)
            except ReadTimeoutError as error:
                raise Transient(f"{host} did not answer in time") from error
            except HTTPError as error:
                problem = error
        raise Transient(f"{host} cannot be reached: {problem}"[:MAX_REASON]) from problem

    def _send(self, address: str, body: bytes, headers: dict[str, str]) -> _Reply:
        path = self._url.path or "/"
        response = self._pool(address).urlopen(
            "POST",
            f"{path}?{self._url.query}" if self._url.query else path,
            body=body,
            headers=headers,
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            start = response.read(MAX_REPLY)
            ended = response.read(1) == b""
        finally:
            response.release_conn()
        if not ended:
            response.close()
        return _Reply(
            response.status,
            response.headers.get("Retry-After"),
            " ".join(start.decode(errors="replace").split()),
        )


def _within(seconds: float, send: Callable[[], _Reply]) -> _Reply:
    """The reply of ``send``, or its error, if it comes in time. Raises Transient otherwise.

    The client's own time-out counts from byte to byte: a server that sends one now and then would
    hold its caller for ever. The thread that is left behind ends with its connection.
    """
    ended: list[_Reply | Exception] = []

    def run() -> None:
        try:
            ended.append(send())
        except Exception as error:  # noqa: BLE001  raised again in the caller's thread
            ended.append(error)

    thread = threading.Thread(target=run, name="webhook", daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise Transient(f"no whole answer within {seconds:g} s")
    [result] = ended
    if isinstance(result, Exception):
        raise result
    return result


@dataclass(frozen=True)
class _Reply:
    status: int
    retry_after: str | None
    text: str


@dataclass(frozen=True)
class _Pools:
    url: SplitResult
    trust: ssl.SSLContext | None

    def make(self, address: str) -> urllib3.HTTPConnectionPool:
        """A pool that connects to the address, whatever the name resolves to by then, and only if
        the certificate is the name's."""
        port, timeout = _port(self.url), urllib3.Timeout(CONNECT_TIMEOUT, READ_TIMEOUT)
        if self.url.scheme == "http":
            return urllib3.HTTPConnectionPool(address, port, timeout=timeout)
        return urllib3.HTTPSConnectionPool(
            address,
            port,
            timeout=timeout,
            ssl_context=self.trust,
            cert_reqs="CERT_REQUIRED",
            server_hostname=self.url.hostname,
            assert_hostname=self.url.hostname,
        )


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """``v1=`` and the HMAC-SHA256, in hex, of the timestamp (epoch seconds), a full stop and the
    body's bytes."""
    mac = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256)
    return f"{VERSION}={mac.hexdigest()}"


def _port(url: SplitResult) -> int:
    return url.port or (80 if url.scheme == "http" else 443)
