"""The client's own rules: bodies stay exact, problems are typed, waiting ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from fairlane_client import (
    ApiProblem,
    BadAddress,
    Client,
    ClientError,
    InexactNumber,
    JobPage,
    JobView,
    NewJob,
    State,
    StillRunning,
    Unreachable,
)
from fairlane_client.problems import problem_of
from tests.support.views import job_view


def view(id_: str = "j1", state: str = "RUNNING", **more: object) -> JobView:
    return job_view(id_, state=state, **{"total": 3, **more})


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


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"add": 0.1}, r'params\.add is the float 0\.1, .* Decimal\("0\.1"\)'),
        ({"fields": {"a": [1, {"b": 2.5}]}}, r"params\.fields\.a\[1\]\.b is the float 2\.5"),
        ({"add": Decimal("NaN")}, r"params\.add is NaN, which is no JSON number"),
        ({"at": datetime(2026, 1, 2, tzinfo=UTC)}, r"params\.at is of type datetime"),
        ({"raw": b"x"}, r"params\.raw is of type bytes"),
    ],
)
def test_a_value_that_is_not_exact_is_refused_by_its_field(
    params: dict[str, Any], said: str
) -> None:
    with pytest.raises(InexactNumber, match=said):
        NewJob(operation="o", subject="s", ids=["1"], params=params)
    good = NewJob(operation="o", subject="s", ids=["1"])
    with pytest.raises(InexactNumber, match=said):
        good.model_copy(update={"params": params}).json_body()


def test_a_query_is_exact_too() -> None:
    query = {"all": [{"field": "price", "op": "lt", "value": 0.5}]}
    with pytest.raises(InexactNumber, match=r"query\.all\[0\]\.value is the float"):
        NewJob(operation="o", subject="s", query=query)


# --- addresses and tokens ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://abc.example/live/",
        "http://127.0.0.1:4566/x",
        "http://localhost:1",
        "http://abc.execute-api.localhost:4566/live",
        "http://[::1]:8080",
    ],
)
def test_https_or_this_machine(url: str) -> None:
    assert Client(url, "t").url == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://abc.example/live", "clear text: write https"),
        ("http://10.0.0.1", "clear text: write https"),
        ("http://localhost.example", "clear text"),
        ("abc.example/live", "no scheme: write https://abc.example/live"),
        ("abc.example:443/live", "no scheme: write https://abc.example:443/live"),
        ("//abc.example", "no scheme"),
        ("ftp://abc.example", "no scheme"),
        ("", "no scheme"),
    ],
)
def test_a_token_never_goes_out_in_clear_text(url: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said):
        Client(url, "t")


@pytest.mark.parametrize("token", ["", "a\nb", "caf\u00e9"])
def test_a_token_that_is_none_is_refused_and_not_shown(token: str) -> None:
    with Client("http://127.0.0.1:1", token) as made, pytest.raises(BadAddress) as caught:
        made.get("j1")
    assert not token or token not in str(caught.value)


def test_a_time_without_a_zone_is_refused() -> None:
    with Client("http://127.0.0.1:1", "t") as made, pytest.raises(ValueError, match="time zone"):
        made.page(created_after=datetime(2026, 1, 2))  # noqa: DTZ001  that is the case


# --- problems ---------------------------------------------------------------------------------


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


class Silent:
    """Looks that bring no answer for a while, and the time they take."""

    def __init__(self, clock: Clock, until: float, error: ClientError) -> None:
        self.clock, self.until, self.error = clock, until, error
        self.looks = 0

    def __call__(self, _: str) -> JobView:
        self.looks += 1
        if self.clock.now < self.until:
            raise self.error
        return view(state="SUCCEEDED")


THROTTLED = problem_of(429, {}, None)
PASSING = [Unreachable("nobody there"), THROTTLED, problem_of(503, {"code": "unavailable"}, "7")]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("timeout", "silence"), [(60, 29), (400, 99), (None, 590)])
def test_a_watch_outlives_a_silence_in_proportion_to_its_time_out(
    client: Client,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    timeout: float | None,
    silence: float,
    error: ClientError,
) -> None:
    look = Silent(clock, clock.now + silence, error)
    monkeypatch.setattr(client, "get", look)
    assert client.wait("j1", timeout=timeout).state is State.SUCCEEDED
    assert look.looks > 3
    assert client.wait("j1", timeout=timeout).state is State.SUCCEEDED  # and it counts anew

    began = clock.now
    for_ever = Silent(clock, clock.now + 10_000, error)
    monkeypatch.setattr(client, "get", for_ever)
    with pytest.raises(type(error)):
        client.wait("j1", timeout=timeout)
    assert silence <= clock.now - began <= 2 * silence


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_an_answer_ends_a_watch(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    look = Silent(clock, clock.now + 1, problem_of(status, {}, None))
    monkeypatch.setattr(client, "get", look)
    with pytest.raises(ApiProblem):
        client.wait("j1")
    assert look.looks == 1


def test_a_wait_that_never_had_an_answer_says_so(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "get", Silent(clock, clock.now + 99, Unreachable("nobody")))
    with pytest.raises(Unreachable):
        client.wait("j1", timeout=5)
    assert clock.now <= 105


@pytest.mark.parametrize(("limit", "asked"), [(2, [2]), (3, [3, 1]), (4, [4, 2]), (9, [9, 7, 5])])
def test_a_list_goes_over_pages_until_it_has_enough(
    client: Client, monkeypatch: pytest.MonkeyPatch, limit: int, asked: list[int]
) -> None:
    pages = {None: ("a", "b", "n1"), "n1": ("c", "d", "n2"), "n2": ("e", "f", None)}
    limits: list[int] = []

    def get_page(*, limit: int, page: str | None = None, **_: object) -> JobPage:
        limits.append(limit)
        one, two, following = pages[page]
        return JobPage(jobs=(view(str(one)), view(str(two))), next=following)

    monkeypatch.setattr(client, "page", get_page)
    assert [job.id for job in client.jobs(limit)] == list("abcdef")[:limit]
    assert limits == asked
