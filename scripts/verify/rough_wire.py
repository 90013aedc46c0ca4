"""A wire between AWS's clients and the local AWS that loses, delays, repeats and cuts by a plan.

One door for each service. What happens to a request is drawn from the seed, the service and the
request's number, so that a plan can be given again; which request has which number is the
machine's business.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Final

from scripts.local.ministack import HOST

FORWARD_S: Final = 120
"""A reply of the local AWS that takes longer is lost, too."""
LATE_S: Final = (0.05, 2.0)
HOP_BY_HOP: Final = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


class Trouble(StrEnum):
    """What can become of a request."""

    NONE = "passed on"
    DROPPED = "dropped"
    """It never arrives."""
    LATE = "late"
    """It arrives after a while."""
    REPEATED = "repeated"
    """It arrives twice; the caller hears the second reply."""
    UNHEARD = "unheard"
    """It arrives, and its reply is lost."""
    CUT = "cut"
    """It arrives, and its reply ends in the middle."""


SHARE: Final[Mapping[Trouble, float]] = {
    Trouble.DROPPED: 0.02,
    Trouble.LATE: 0.04,
    Trouble.REPEATED: 0.03,
    Trouble.UNHEARD: 0.03,
    Trouble.CUT: 0.02,
}
"""Of all requests."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass
class Door:
    """The wire to one service."""

    service: str
    port: int
    """Of the local AWS behind it."""
    seed: int
    happened: Counter[Trouble] = field(default_factory=Counter)
    rough: threading.Event = field(default_factory=threading.Event)
    """Set while there is trouble."""
    url: str = ""
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def draw(self) -> Trouble:
        """What becomes of the next request."""
        with self._lock:
            self._number += 1
            number = self._number
        drawn = Random(f"{self.seed} {self.service} {number}").random()  # noqa: S311  repeatable
        trouble = _which(drawn) if self.rough.is_set() else Trouble.NONE
        with self._lock:
            self.happened[trouble] += 1
        return trouble

    def late_s(self) -> float:
        """Seconds that a late request is on its way."""
        drawn = Random(f"{self.seed} {self.service} late {self._number}")  # noqa: S311  repeatable
        return drawn.uniform(*LATE_S)

    def forward(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Raises OSError, HTTPException."""
        connection = HTTPConnection(HOST, self.port, timeout=FORWARD_S)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            return Reply(answer.status, tuple(answer.getheaders()), answer.read())
        finally:
            connection.close()


def _which(drawn: float) -> Trouble:
    below = 0.0
    for trouble, share in SHARE.items():
        below += share
        if drawn < below:
            return trouble
    return Trouble.NONE


@dataclass(frozen=True)
class Wire:
    """The doors to all services."""

    doors: Mapping[str, Door]

    @property
    def environment(self) -> dict[str, str]:
        """What makes an AWS client go through the doors."""
        return {f"AWS_ENDPOINT_URL_{name.upper()}": door.url for name, door in self.doors.items()}

    @contextmanager
    def trouble(self) -> Iterator[None]:
        for door in self.doors.values():
            door.rough.set()
        try:
            yield
        finally:
            for door in self.doors.values():
                door.rough.clear()

    def happened(self, trouble: Trouble) -> int:
        return sum(door.happened[trouble] for door in self.doors.values())


@contextmanager
def wire(ports: Mapping[str, int], seed: int) -> Iterator[Wire]:
    """ports: of the local AWS, by the service's name in ``AWS_ENDPOINT_URL_…``."""
    with ExitStack() as open_:
        doors = {}
        for service, port in ports.items():
            door = Door(service, port, seed)
            server = _Server(door)
            door.url = f"http://{HOST}:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, name=f"wire-{service}")
            thread.start()
            open_.callback(thread.join)
            open_.callback(server.server_close)
            open_.callback(server.shutdown)
            doors[service] = door
        yield Wire(doors)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, door: Door) -> None:
        super().__init__((HOST, 0), _Passage)
        self.door = door


class _Passage(BaseHTTPRequestHandler):
    """One caller's connection to a door."""

    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = FORWARD_S

    def __getattr__(self, name: str) -> Callable[[], None]:
        """The handler's name for every method: ``do_GET``, ``do_POST``, …"""
        if name.startswith("do_"):
            return self._pass_on
        raise AttributeError(name)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the caller has gone

    def log_message(self, *_: object) -> None:
        """Nobody reads them."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        trouble = self.server.door.draw()
        reply = self._reply(trouble, body)
        if reply is None or trouble is Trouble.UNHEARD:
            self.close_connection = True
            return
        self._answer(reply, cut=trouble is Trouble.CUT)

    def _reply(self, trouble: Trouble, body: bytes) -> Reply | None:
        """What the local AWS says; None when it has not heard of the request."""
        if trouble is Trouble.DROPPED:
            return None
        if trouble is Trouble.LATE:
            time.sleep(self.server.door.late_s())
        try:
            if trouble is Trouble.REPEATED:
                self._forward(body)
            return self._forward(body)
        except (OSError, HTTPException):
            return None

    def _forward(self, body: bytes) -> Reply:
        # Kept as it came, Host too: it is part of what is signed.
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in HOP_BY_HOP or name.lower() == "content-length"
        }
        return self.server.door.forward(self.command, self.path, headers, body)

    def _answer(self, reply: Reply, *, cut: bool) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(reply.body[: len(reply.body) // 2] if cut else reply.body)
        if cut:
            self.close_connection = True
