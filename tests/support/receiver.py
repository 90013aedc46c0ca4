"""A server on loopback that keeps the requests it gets."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Got:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server and what it was sent."""

    server: ThreadingHTTPServer
    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bytes = b""
    got: list[Got] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in?x=1"


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            running.got.append(Got(self.path, dict(self.headers), body))
            self.send_response(running.status)
            for name, value in running.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(running.text)))
            self.end_headers()
            self.wfile.write(running.text)

        def log_message(self, *_: object) -> None:
            """Nowhere."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    running = Receiver(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
