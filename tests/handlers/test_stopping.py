"""The bulk worker's process is told to end, at every moment from its own first line on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from infra.bulk_lane import COMMAND
from tests.handlers.deployment import settings

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 600
"""Seconds until the test gives up; nothing is asserted about how long anything takes."""

# Python runs a module of this name before anything else. It sends the process its signal when the
# interpreter tells of the event for the first time (see CPython's table of audit events).
TRAP: Final = """
import os, sys

wanted, number = os.environ["TRAP"], int(os.environ["TRAP_SIGNAL"])
sprung = []

def trap(event, arguments):
    if not sprung and wanted in (event, f"{event} {arguments[0] if arguments else ''}"):
        sprung.append(event)
        os.kill(os.getpid(), number)

sys.addaudithook(trap)
"""
STARTING: Final = [
    "import handlers.slots",  # the first that is imported once the handlers are there
    "import boto3",
    "import pydantic",
    "import handlers.jobs.execution.delivery",
    "import handlers.operations.decimals",  # while the ports are made
]


@dataclass
class Queues:
    """What answers the worker: no message is there."""

    server: ThreadingHTTPServer
    asked: list[str] = field(default_factory=list)
    """The operations it was asked for."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def queues() -> Iterator[Queues]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            here.asked.append(self.headers["X-Amz-Target"])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    here = Queues(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    thread = threading.Thread(target=here.server.serve_forever, args=(0.01,))
    thread.start()
    yield here
    here.server.shutdown()
    here.server.server_close()
    thread.join()


def serve(
    queues: Queues, folder: Path, moment: str, number: int
) -> subprocess.CompletedProcess[str]:
    """The deployed command, told to end at the moment."""
    (folder / "sitecustomize.py").write_text(TRAP, encoding="utf-8")
    urls = {lane: f"{queues.url}/123456789012/{lane}" for lane in Lane}
    return subprocess.run(
        [sys.executable, *COMMAND[1:]],
        cwd=ROOT,
        env={
            **os.environ,
            **settings(urls, Limits()).to_env(),
            "AWS_ENDPOINT_URL": queues.url,
            "PYTHONPATH": str(folder),
            "TRAP": moment,
            "TRAP_SIGNAL": str(int(number)),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("moment", STARTING)
def test_c24_a_worker_that_still_starts_exits_with_0_and_takes_no_message(
    queues: Queues, tmp_path: Path, moment: str
) -> None:
    ended = serve(queues, tmp_path, moment, signal.SIGTERM)
    assert ended.returncode == 0, ended.stderr
    assert '"action":"worker_stopped"' in ended.stdout
    assert queues.asked == []


@pytest.mark.parametrize("moment", ["socket.getaddrinfo", "socket.connect"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_c24_a_worker_that_serves_exits_with_0(
    queues: Queues, tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    ended = serve(queues, tmp_path, moment, number)
    assert ended.returncode == 0, ended.stderr
    assert '"action":"worker_stopped"' in ended.stdout
    assert set(queues.asked) <= {"AmazonSQS.ReceiveMessage"}
