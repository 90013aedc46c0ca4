"""How ``fairlane jobs`` ends: each end has a number of its own, and the page lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fairlane_client import Client, ClientError, JobView, NotDownloaded, StillRunning, Unreachable
from fairlane_client.cli import INTERRUPTED
from fairlane_client.commands.exits import Exit
from fairlane_client.commands.showing import ending
from fairlane_client.problems import problem_of
from tests.support.commands import BASE, JOB, invoke
from tests.support.views import job_view

PAGE: Final = Path(__file__).parents[3] / "docs" / "client.md"
LISTS: Final = "`fairlane jobs items j1` lists them"
ENDS: Final[list[tuple[dict[str, Any], Exit, str]]] = [
    ({"state": "SUCCEEDED", "succeeded": 2}, Exit.WELL, "SUCCEEDED: 2 of 2 records changed"),
    (
        {"state": "SUCCEEDED", "succeeded": 1, "skipped": 1},
        Exit.WELL,
        "SUCCEEDED: 1 of 2 records changed, 1 skipped; `fairlane jobs items j1` lists them",
    ),
    (
        {"state": "SUCCEEDED", "failed": 2},
        Exit.WITH_FAILURES,
        "SUCCEEDED: 0 of 2 records changed, 2 failed; `fairlane jobs items j1` lists them",
    ),
    (
        {
            "state": "SUCCEEDED",
            "succeeded": 2,
            "effects": {"open": 0, "done": 1, "parked": 0, "refused": 1},
        },
        Exit.WITH_FAILURES,
        "SUCCEEDED: 2 of 2 records changed, 1 refused outside; `fairlane jobs items j1` lists them",
    ),
    (
        {"state": "FAILED", "end_reason": "too_many_failed", "failed": 2},
        Exit.FAILED,
        f"FAILED (too_many_failed): 0 of 2 records changed, 2 failed; {LISTS}",
    ),
    ({"state": "CANCELLED", "total": None}, Exit.CANCELLED, "CANCELLED: 0 of ? records changed"),
    (
        {"state": "EXPIRED", "finished_at": "2026-01-02T03:04:05Z"},
        Exit.FAILED,
        "EXPIRED: 0 of 2 records changed",
    ),
]


@pytest.mark.parametrize(("changes", "status", "line"), ENDS, ids=lambda part: str(part)[:40])
@pytest.mark.parametrize("json_", [(), ("--json",)], ids=["people", "json"])
def test_the_end_of_a_job_is_a_status_and_a_line(
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    status: Exit,
    line: str,
    json_: tuple[str, ...],
) -> None:
    def watch(*_: object, **__: object) -> Iterator[JobView]:
        yield job_view(**changes)

    monkeypatch.setattr(Client, "watch", watch)
    monkeypatch.setattr(Client, "submit", lambda *_, **__: job_view())
    submit = [each for each in BASE if each != "--json"]
    for arguments in (("watch", JOB), (*submit, "--id", "1", "--wait")):
        result = invoke(*arguments, *json_)
        assert result.exit_code == status
        assert result.stderr.splitlines()[-1] == line


@pytest.mark.parametrize(
    ("effects", "said"),
    [
        ({"open": 1, "parked": 0}, "; the changes of 1 chunk have not reached all sinks yet"),
        (
            {"open": 2, "parked": 3},
            "; the changes of 5 chunks have not reached all sinks yet (3 parked until a replay)",
        ),
        ({"open": 0, "parked": 0}, ""),
    ],
)
def test_c93_the_last_line_says_what_sinks_have_still_to_hear(
    effects: dict[str, int], said: str
) -> None:
    job = job_view(
        state="CANCELLED", succeeded=4, total=9, effects={"done": 7, "refused": 0} | effects
    )
    assert ending(job) == "CANCELLED: 4 of 9 records changed" + said


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (problem_of(409, {"code": "subject_busy"}, None), Exit.REFUSED),
        (problem_of(403, {"code": "refused"}, None), Exit.REFUSED),
        (problem_of(418, None, None), Exit.REFUSED),
        (problem_of(401, {"code": "unauthorized"}, None), Exit.NOT_ALLOWED),
        (problem_of(403, {"code": "insufficient_scope"}, None), Exit.NOT_ALLOWED),
        (problem_of(403, {"message": "Forbidden"}, None), Exit.NOT_ALLOWED),
        (Unreachable("nobody"), Exit.UNREACHABLE),
        (StillRunning("not yet"), Exit.STILL_RUNNING),
        (NotDownloaded("gone"), Exit.REFUSED),
    ],
    ids=str,
)
@pytest.mark.parametrize("verb", ["get", "watch"])
def test_an_error_is_a_status(
    monkeypatch: pytest.MonkeyPatch, error: ClientError, status: Exit, verb: str
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise error

    monkeypatch.setattr(Client, "get", fail)
    monkeypatch.setattr(Client, "watch", fail)
    assert invoke(verb, JOB).exit_code == status


def test_the_time_out_of_a_wait_is_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []

    def watch(_: Client, __: str, *, timeout: float | None) -> Iterator[JobView]:
        given.append(timeout)
        yield job_view(state="SUCCEEDED")

    monkeypatch.setattr(Client, "watch", watch)
    monkeypatch.setattr(Client, "submit", lambda *_, **__: job_view())
    invoke("watch", JOB, "--timeout", "2.5")
    invoke(*BASE, "--id", "1", "--wait", "--timeout", "60")
    invoke("watch", JOB)
    assert given == [2.5, 60, None]


def test_the_page_lists_every_status() -> None:
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [int(row) for row in rows] == sorted(Exit)
    assert Exit.INTERRUPTED == INTERRUPTED
