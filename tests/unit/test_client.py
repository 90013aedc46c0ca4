"""The client's own rules: bodies stay exact, problems are typed, waiting ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from fairlane_client import Client, JobPage, JobView, NewJob, State, StillRunning
from fairlane_client.problems import problem_of


def view(id_: str = "j1", state: str = "RUNNING", **more: object) -> JobView:
    return JobView.model_validate(
        {
            "id": id_,
            "url": f"/v1/jobs/{id_}",
            "operation": "set_fields",
            "subject": "products",
            "lane": "small",
            "state": state,
            "total": 3,
            "created_at": "2026-01-02T03:04:05.678Z",
            **more,
        }
    )


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Iterator[Client]:
    made = Client("http://127.0.0.1:1/stage/", "token", now=clock, sleep=clock.sleep)
    yield made
    made.close()


def test_a_body_keeps_numbers_exact_and_leaves_out_what_is_not_given() -> None:
    params = {"add": Decimal("0.1000000000000000055"), "field": "ü"}
    body = NewJob(operation="o", subject="s", ids=["007", "7"], params=params).json_body()
    assert b"0.1000000000000000055" in body
    assert json.loads(body, parse_float=Decimal) == {
        "operation": "o",
        "subject": "s",
        "ids": ["007", "7"],
        "params": params,
    }


def test_a_float_is_refused_before_it_is_sent() -> None:
    with pytest.raises(TypeError, match="float"):
        NewJob(operation="o", subject="s", ids=["1"], params={"add": 0.1}).json_body()


def test_a_problem_names_code_field_detail_and_the_holder() -> None:
    body = {
        "code": "subject_busy",
        "detail": "job j0 (RUNNING) is working on this subject",
        "field": "subject",
        "active_job": {"id": "j0", "state": "RUNNING"},
    }
    problem = problem_of(409, body, "2")
    assert (problem.status, problem.code, problem.field) == (409, "subject_busy", "subject")
    assert problem.active_job_id == "j0"
    assert problem.retry_after == 2
    assert str(problem) == f"subject_busy (subject): {body['detail']}"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"message": "Unauthorized"}, "Unauthorized"),
        (None, "the answer has status 403"),
        (["no", "object"], "the answer has status 403"),
        ({"code": 5, "detail": None, "field": []}, "the answer has status 403"),
    ],
)
def test_an_answer_that_is_no_problem_document_is_a_problem_too(body: Any, detail: str) -> None:
    problem = problem_of(403, body, None)
    assert (problem.code, problem.detail, problem.field) == ("http_403", detail, None)
    assert problem.retry_after is None
    assert problem.active_job_id is None


def test_a_newer_api_may_say_more() -> None:
    assert view(traversal="live").as_json()["traversal"] == "live"


def test_a_job_of_unknown_size_is_shown() -> None:
    assert view(total=None).total is None


def test_waiting_brings_the_job_that_has_ended(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter(["QUEUED", "RUNNING", "SETTLING", "FAILED", "SUCCEEDED"])
    monkeypatch.setattr(client, "get", lambda _: view(state=next(states)))
    assert client.wait("j1", poll=2).state is State.FAILED
    assert clock.now == 106


def test_waiting_gives_up_when_its_time_is_over(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "get", lambda _: view())
    with pytest.raises(StillRunning, match="j1 is RUNNING after 5 s"):
        client.wait("j1", poll=2, timeout=5)
    assert clock.now <= 105


@pytest.mark.parametrize(("limit", "asked"), [(2, [2]), (3, [3, 1]), (4, [4, 2]), (9, [9, 7, 5])])
def test_a_list_goes_over_pages_until_it_has_enough(
    client: Client, monkeypatch: pytest.MonkeyPatch, limit: int, asked: list[int]
) -> None:
    pages = {None: ("a", "b", "n1"), "n1": ("c", "d", "n2"), "n2": ("e", "f", None)}
    limits: list[int] = []

    def page(*, limit: int, token: str | None = None) -> JobPage:
        limits.append(limit)
        one, two, following = pages[token]
        return JobPage(jobs=(view(str(one)), view(str(two))), next=following)

    monkeypatch.setattr(client, "page", page)
    assert [job.id for job in client.jobs(limit)] == list("abcdef")[:limit]
    assert limits == asked
