"""What a door of the rough wire does to requests and replies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.verify import rough_wire
from scripts.verify.rough_wire import Trouble, Wire, wire

BODY = b"answer" * 100


class Behind(BaseHTTPRequestHandler):
    """The service behind the door."""

    heard: list[tuple[str, bytes]]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Not needed."""


@pytest.fixture
def heard() -> list[tuple[str, bytes]]:
    return []


@pytest.fixture
def rough(heard: list[tuple[str, bytes]]) -> Iterator[Wire]:
    handler = type("Handler", (Behind,), {"heard": heard})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        with wire({"sqs": server.server_port}, seed=1) as wires:
            yield wires
        server.shutdown()
        serving.join()


def ask(rough: Wire) -> bytes:
    host, _, port = rough.environment["AWS_ENDPOINT_URL_SQS"].removeprefix("http://").partition(":")
    connection = HTTPConnection(host, int(port), timeout=60)
    try:
        connection.request("POST", "/path?a=1", body=b"question")
        return connection.getresponse().read()
    finally:
        connection.close()


ONCE = [("/path?a=1", b"question")]


def test_a_calm_wire_passes_everything_on(rough: Wire, heard: list[tuple[str, bytes]]) -> None:
    assert [ask(rough) for _ in range(3)] == [BODY] * 3
    assert heard == ONCE * 3
    assert rough.happened(Trouble.NONE) == 3


@pytest.mark.parametrize(
    ("trouble", "arrives", "answered"),
    [
        (Trouble.DROPPED, 0, False),
        (Trouble.LATE, 1, True),
        (Trouble.REPEATED, 2, True),
        (Trouble.UNHEARD, 1, False),
        (Trouble.CUT, 1, False),
    ],
)
def test_each_trouble(
    rough: Wire,
    heard: list[tuple[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
    trouble: Trouble,
    arrives: int,
    answered: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(rough_wire, "SHARE", {trouble: 1.0})
    with rough.trouble():
        if answered:
            assert ask(rough) == BODY
        else:
            with pytest.raises((OSError, HTTPException)):
                ask(rough)
    assert heard == ONCE * arrives
    assert rough.happened(trouble) == 1
    assert ask(rough) == BODY  # calm again


def test_a_plan_is_the_same_for_a_seed() -> None:
    def plan(seed: int) -> list[Trouble]:
        door = rough_wire.Door("dynamodb", 1, seed)
        door.rough.set()
        return [door.draw() for _ in range(400)]

    assert plan(1) == plan(1) != plan(2)
    assert set(plan(1)) == set(Trouble)
