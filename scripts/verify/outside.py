"""Places outside that a scenario can look into and stop at: a gate before the search engine, and a
receiver of webhooks. Both are servers on loopback, in this process."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import urllib3

from scripts.local.errors import LocalError
from scripts.local.ministack import HOST

HELD_S: Final = 600
"""How long a request is held, and waited for, at the most. Far more than it takes: a scenario that
waits for a request has left a job whose next chunk makes one."""
PASSED_ON: Final = ("content-type",)


class Point(Enum):
    """Where a request is stopped."""

    BEFORE = auto()
    """It never arrives."""
    AFTER = auto()
    """It has been carried out, and nobody hears of it."""


@dataclass
class Stop:
    """One request to be stopped, and the moment at which it is."""

    point: Point
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    body: bytes = b""

    def wait(self) -> None:
        """Until a request is stopped here. Raises LocalError."""
        if not self.reached.wait(HELD_S):
            raise LocalError(f"no request to stop within {HELD_S} s")


@dataclass
class Gate:
    """Hands every request on to the engine, tells ``sees`` of each bulk request's actions before
    that, and stops one where it is asked to."""

    engine: str
    sees: Callable[[list[tuple[str, int]]], None] = lambda _: None
    """Told (document id, version) of each versioned write."""
    url: str = ""
    bulks: int = 0
    _stops: list[Stop] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=16))

    def stop_next(self, point: Point) -> Stop:
        stop = Stop(point)
        with self._lock:
            self._stops.append(stop)
        return stop

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if not path.partition("?")[0].endswith("/_bulk"):
            return self._hand_on(method, path, headers, body)
        with self._lock:
            self.bulks += 1
            stop = self._stops.pop(0) if self._stops else None
        self.sees(versions_in(body))
        if stop is None:
            return self._hand_on(method, path, headers, body)
        stop.body = body
        if stop.point is Point.AFTER:
            self._hand_on(method, path, headers, body)
        stop.reached.set()
        stop.go_on.wait(HELD_S)
        return Reply(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"stopped here")

    def _hand_on(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        kept = {name: value for name, value in headers.items() if name.lower() in PASSED_ON}
        reply = self._pool.request(
            method, self.engine + path, body=body, headers=kept, retries=False
        )
        return Reply(reply.status, reply.headers.get("content-type", ""), reply.data)


@dataclass
class Receiver:
    """Takes webhooks."""

    url: str = ""
    keys: Counter[str] = field(default_factory=Counter)
    """How often each Idempotency-Key came."""

    _stop: Stop | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop_next(self) -> Stop:
        """Take the next delivery, and answer it too late."""
        stop = Stop(Point.AFTER)
        with self._lock:
            self._stop = stop
        return stop

    def answer(self, _method: str, _path: str, headers: Mapping[str, str], _body: bytes) -> Reply:
        with self._lock:
            self.keys[headers["Idempotency-Key"]] += 1
            stop, self._stop = self._stop, None
        if stop is not None:
            stop.reached.set()
            stop.go_on.wait(HELD_S)
        return Reply(HTTPStatus.NO_CONTENT, "", b"")


@dataclass(frozen=True)
class Reply:
    status: int
    kind: str
    body: bytes
    retry_after: int | None = None
    """Seconds; sent as Retry-After."""


def versions_in(body: bytes) -> list[tuple[str, int]]:
    """(document id, version) of the versioned writes in a bulk body."""
    found = []
    lines = iter(body.splitlines())
    for line in lines:
        [(verb, options)] = json.loads(line).items()
        if verb != "delete":
            next(lines)
        if "version" in options:
            found.append((str(options["_id"]), int(options["version"])))
    return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Who asks is killed on purpose."""


@contextmanager
def serving(place: Gate | Receiver) -> Iterator[None]:
    """The place answers at its ``url`` while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = place.answer(self.command, self.path, self.headers, body)  # type: ignore[arg-type]  # a Message reads like a mapping
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(len(answer.body)))
                if answer.retry_after is not None:
                    self.send_header("Retry-After", str(answer.retry_after))
                self.end_headers()
                self.wfile.write(answer.body)
            except ConnectionError:
                self.close_connection = True  # whoever asked was killed meanwhile

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do  # noqa: N815  the base class's names

        def log_message(self, *_: Any) -> None:
            """Nowhere."""

    server = _Server((HOST, 0), Handler)
    place.url = f"http://{HOST}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
