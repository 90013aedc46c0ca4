"""ECS task protection against a server that plays the container agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from handlers.aws import protection
from handlers.aws.protection import Protection, Terms, protection_from
from handlers.testing.telemetry import MemoryTelemetry

LONG = 600.0
"""Seconds no test waits, unless it fails."""
OK = {"protection": {"ProtectionEnabled": True, "TaskArn": "arn:aws:ecs:eu-west-1:1:task/t"}}


@dataclass
class Agent:
    """Remembers what it was asked; each answer can be held back."""

    url: str = ""
    status: int = 200
    body: bytes = json.dumps(OK).encode()
    asked: list[tuple[str, Any]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    answering: threading.Event = field(default_factory=threading.Event)

    def note(self, path: str, body: Any) -> None:
        with self.changed:
            self.asked.append((path, body))
            self.changed.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        """The bodies, when there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, LONG), self.asked
            return [body for _, body in self.asked]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """Asked as patiently as a busy machine needs."""
    monkeypatch.setattr(protection, "TIMEOUT", LONG)
    made = Agent()
    made.answering.set()

    class Answer(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.note(self.path, json.loads(body))
            made.answering.wait(LONG)
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        made.url = f"http://127.0.0.1:{server.server_port}/api/0123"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.answering.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def telemetry() -> MemoryTelemetry:
    return MemoryTelemetry()


def test_protected_while_busy_and_free_afterwards(agent: Agent, telemetry: MemoryTelemetry) -> None:
    keeper = Protection(agent.url, telemetry)
    with keeper:
        assert agent.wait_for(1) == [{"ProtectionEnabled": True, "ExpiresInMinutes": 10}]
    assert agent.wait_for(2)[1] == {"ProtectionEnabled": False}
    keeper.close()
    assert {path for path, _ in agent.asked} == {"/api/0123/task-protection/v1/state"}
    assert telemetry.lines == []


def test_it_is_renewed_well_before_it_runs_out(agent: Agent, telemetry: MemoryTelemetry) -> None:
    assert protection.RENEW_SECONDS * 2 < protection.EXPIRES_MINUTES * 60
    keeper = Protection(agent.url, telemetry, renew_seconds=0.01)
    with keeper:
        bodies = agent.wait_for(4)
        assert {body["ProtectionEnabled"] for body in bodies} == {True}
    keeper.close()
    assert agent.asked[-1][1] == {"ProtectionEnabled": False}


def test_it_ends_after_its_limit_although_the_job_runs_on(
    agent: Agent, telemetry: MemoryTelemetry
) -> None:
    keeper = Protection(agent.url, telemetry, terms=Terms(limit=0.1, pause=LONG))
    with keeper:
        *before, last = agent.wait_for(2)
        assert before == [{"ProtectionEnabled": True, "ExpiresInMinutes": 1}]
        assert last == {"ProtectionEnabled": False}
        keeper.close()


def test_protected_until_the_last_slot_is_free(agent: Agent, telemetry: MemoryTelemetry) -> None:
    keeper = Protection(agent.url, telemetry, renew_seconds=0.01)
    with keeper:
        with keeper:
            agent.wait_for(1)
        renewed = agent.wait_for(len(agent.asked) + 3)
        assert {body["ProtectionEnabled"] for body in renewed} == {True}
    keeper.close()
    assert agent.asked[-1][1] == {"ProtectionEnabled": False}


def test_an_idle_task_asks_for_nothing(agent: Agent, telemetry: MemoryTelemetry) -> None:
    Protection(agent.url, telemetry).close()
    assert agent.asked == []


def test_closing_gives_the_protection_up_under_a_running_job(
    agent: Agent, telemetry: MemoryTelemetry
) -> None:
    keeper = Protection(agent.url, telemetry)
    with keeper:
        agent.wait_for(1)
        keeper.close()
        assert agent.wait_for(2)[1] == {"ProtectionEnabled": False}
    assert len(agent.asked) == 2


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, {"failure": {"Reason": "DEPLOYMENT_BLOCKED", "Detail": "older than 2 h"}}),
        (200, {"requestID": "1", "error": {"Code": "AccessDeniedException", "Message": "no"}}),
        (500, {"requestID": "1", "error": {"Code": "RequestTimeout", "Message": "late"}}),
        (404, {}),
        (200, []),
        (200, None),
        (200, "yes"),
        (200, {"protection": None}),
    ],
)
def test_a_refusal_is_logged_also_when_it_says_200(
    agent: Agent, telemetry: MemoryTelemetry, status: int, answer: object
) -> None:
    agent.status, agent.body = status, json.dumps(answer).encode()
    keeper = Protection(agent.url, telemetry)
    with keeper:
        agent.wait_for(1)
    agent.wait_for(2)
    keeper.close()
    assert telemetry.actions() == ["protection_refused"] * 2
    assert telemetry.lines[0].fields["status"] == status
    assert telemetry.lines[0].fields["why"] == answer


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xfe", b"{"])
def test_an_answer_that_is_no_json_is_logged_and_the_next_one_read(
    agent: Agent, telemetry: MemoryTelemetry, body: bytes
) -> None:
    good, agent.body = agent.body, body
    keeper = Protection(agent.url, telemetry, renew_seconds=0.01)
    with keeper:
        agent.wait_for(2)
        agent.body = good
        seen = len(agent.wait_for(3))
        agent.wait_for(seen + 2)
    keeper.close()
    assert set(telemetry.actions()) == {"protection_failed"}
    assert agent.asked[-1][1] == {"ProtectionEnabled": False}


def test_an_agent_that_hangs_holds_no_job_up(agent: Agent, telemetry: MemoryTelemetry) -> None:
    """Jobs come and go while the first question is still open."""
    agent.answering.clear()
    keeper = Protection(agent.url, telemetry)
    with keeper:
        agent.wait_for(1)
    for _ in range(100):
        with keeper:
            pass
    assert len(agent.asked) == 1  # nobody waited for its answer
    agent.answering.set()
    keeper.close()
    assert agent.asked[-1][1] == {"ProtectionEnabled": False}


def test_an_agent_that_is_down_holds_no_job_up(telemetry: MemoryTelemetry) -> None:
    keeper = Protection("http://127.0.0.1:1", telemetry)
    with keeper:
        pass
    keeper.close()
    assert set(telemetry.actions()) <= {"protection_failed"}


@pytest.mark.parametrize("env", [{}, {"ECS_AGENT_URI": ""}])
def test_no_endpoint_is_normal(telemetry: MemoryTelemetry, env: dict[str, str]) -> None:
    before = set(threading.enumerate())
    keeper = protection_from(env, telemetry, 15)
    with keeper:
        pass
    keeper.close()
    assert set(threading.enumerate()) <= before
    assert telemetry.lines == []


def test_the_endpoint_comes_from_the_environment(agent: Agent, telemetry: MemoryTelemetry) -> None:
    keeper = protection_from({"ECS_AGENT_URI": agent.url}, telemetry, 15)
    with keeper:
        agent.wait_for(1)
    keeper.close()
