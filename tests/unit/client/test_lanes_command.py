"""``fairlane lanes``, and the pace that ``jobs watch`` shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairlane_client import Client, LaneView
from fairlane_client.commands.app import app
from fairlane_client.commands.tables import pace
from fairlane_client.problems import problem_of
from tests.support.views import job_view

LANES: list[dict[str, Any]] = [
    {
        "lane": "small",
        "queue": {"waiting": 12, "in_flight": 3},
        "yours": {
            "in_flight": 2,
            "held": 7,
            "limit": 50,
            "dwell_ms": {"p50": 41, "p95": 187, "jobs": 100},
        },
    },
    {
        "lane": "bulk",
        "queue": {"waiting": 0, "in_flight": 1},
        "yours": {"in_flight": 0, "held": 0, "limit": 2},
    },
]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    looks: list[int] = []

    def lanes(_: Client) -> tuple[LaneView, ...]:
        looks.append(1)
        if len(looks) > 3:
            raise KeyboardInterrupt
        return tuple(LaneView.model_validate(lane) for lane in LANES)

    monkeypatch.setattr(Client, "lanes", lanes)
    return looks


def invoke(*arguments: str) -> Result:
    where = ("--url", "http://127.0.0.1:1/x", "--token", "t", "--every", "0.2")
    return CliRunner().invoke(app, ["lanes", *where, *arguments])


def test_json_once(looks: list[int]) -> None:
    result = invoke("--once", "--json")
    assert (result.exit_code, len(looks)) == (0, 1)
    assert json.loads(result.stdout) == {"lanes": LANES}


def test_a_table_once(looks: list[int]) -> None:
    result = invoke("--once")
    assert (result.exit_code, len(looks)) == (0, 1)
    small, bulk = result.stdout.splitlines()[1:3]
    assert small.split()[:6] == ["small", "12", "3", "2", "50", "7"]
    assert "187 ms" in small
    assert "no job" in bulk


def test_it_looks_again_until_it_is_stopped(looks: list[int]) -> None:
    result = invoke()
    assert (result.exit_code, len(looks)) == (130, 4)


def test_what_the_api_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Client) -> None:
        raise problem_of(403, {"code": "insufficient_scope", "detail": "needs jobs:read"}, None)

    monkeypatch.setattr(Client, "lanes", refuse)
    result = invoke("--once", "--json")
    assert result.exit_code == 7
    assert json.loads(result.stdout)["error"]["code"] == "insufficient_scope"


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (None, ""),
        ({"percent": 0}, ""),
        ({"percent": 50, "per_second": 1234.5, "eta_seconds": 75}, "1,234/s  0:01:15 left"),
        ({"percent": 100, "per_second": 1.25}, "1.2/s"),
        ({"per_second": 12.0}, "12/s"),
    ],
)
def test_rate_and_time_left_are_the_apis(progress: Any, expected: str) -> None:
    assert pace(job_view(state="RUNNING", progress=progress)) == expected
