"""What the client sends and what it sends again, seen by a server on loopback."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from fairlane_client import (
    ApiProblem,
    Client,
    NewJob,
    NotAllowed,
    NotDownloaded,
    ReportView,
    Unreachable,
    fetch,
)

from ..support import views
from ..support.pages import blocks

OK = (200, json.dumps(views.JOB))
TOO_MANY = (429, "{}")
UNAVAILABLE = (503, json.dumps({"code": "unavailable", "detail": "later"}))
UNSETTLED = (503, json.dumps({"code": "unsettled", "detail": "perhaps"}))
EXPIRED = (401, json.dumps({"code": "unauthorized", "detail": "it has run out"}))
NO_REPLY = (0, "")
"""The connection is closed after the request arrived."""

JOB = NewJob(operation="set_fields", subject="products", ids=["1"], params={"fields": {"a": None}})


@dataclass
class Api:
    """Answers what it is told to, in order, and remembers what was asked."""

    answers: list[tuple[int, str]]
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def api() -> Iterator[Api]:
    state = Api([])

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.asked.append((self.command, self.path, headers, self.rfile.read(length)))
            status, body = state.answers.pop(0)
            if status:
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.send_header("retry-after", "0")
                self.end_headers()
                self.wfile.write(body.encode())
            self.close_connection = True

        do_GET = do_POST = answer  # noqa: N815  the server's own names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_port}/stage"
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def client(api: Api) -> Iterator[Client]:
    made = Client(api.url, "secret")
    yield made
    made.close()


def test_a_submission_carries_token_key_and_body(api: Api, client: Client) -> None:
    api.answers = [OK]
    assert client.submit(JOB, idempotency_key="k").id == "j1"
    [(method, path, headers, body)] = api.asked
    assert (method, path) == ("POST", "/stage/v1/jobs")
    assert headers["authorization"] == "Bearer secret"
    assert headers["idempotency-key"] == "k"
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["params"] == {"fields": {"a": None}}


def test_an_id_cannot_leave_its_place_in_the_path(api: Api, client: Client) -> None:
    api.answers = [OK]
    client.cancel("../x?y#z")
    assert api.asked[0][1] == "/stage/v1/jobs/..%2Fx%3Fy%23z/cancel"


def test_what_was_throttled_is_sent_again(api: Api, client: Client) -> None:
    api.answers = [TOO_MANY, TOO_MANY, OK]
    assert client.submit(JOB).id == "j1"
    assert len({body for *_, body in api.asked}) == 1


def test_the_job_in_the_way_is_an_answer_when_asked_for(api: Api, client: Client) -> None:
    api.answers = [OK, (202, json.dumps(views.JOB))]
    found = [client.submit(JOB, on_conflict="return_existing").existing for _ in range(2)]
    assert found == [True, None]
    assert api.asked[0][1] == "/stage/v1/jobs?on_conflict=return_existing"


def test_a_question_is_asked_again(api: Api, client: Client) -> None:
    api.answers = [UNAVAILABLE, NO_REPLY, OK]
    assert client.get("j1").id == "j1"


def test_a_submission_whose_fate_is_unknown_is_not_sent_again(api: Api, client: Client) -> None:
    api.answers = [NO_REPLY, OK]
    with pytest.raises(Unreachable, match="did not answer"):
        client.submit(JOB)
    assert len(api.asked) == 1


def test_what_changed_nothing_is_sent_again(api: Api, client: Client) -> None:
    """By the API's own word: a dependency was not there, and nothing was done."""
    api.answers = [UNAVAILABLE, UNAVAILABLE, OK]
    assert client.submit(JOB).id == "j1"


@pytest.mark.parametrize("first", [NO_REPLY, UNSETTLED, (503, "<html>")])
def test_with_a_key_a_submission_is_sent_again_whatever_became_of_it(
    api: Api, client: Client, first: tuple[int, str]
) -> None:
    api.answers = [first, OK]
    assert client.submit(JOB, idempotency_key="k").id == "j1"
    assert [headers["idempotency-key"] for _, _, headers, _ in api.asked] == ["k", "k"]


@pytest.mark.parametrize("first", [NO_REPLY, UNSETTLED])
@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_c93_a_stop_whose_answer_was_lost_is_asked_for_again(
    api: Api, client: Client, verb: str, first: tuple[int, str]
) -> None:
    api.answers += [first, OK]
    assert getattr(client, verb)("j1").id == "j1"
    assert [path for _, path, _, _ in api.asked] == [f"/stage/v1/jobs/j1/{verb}"] * 2


@pytest.mark.parametrize("answer", [UNSETTLED, (503, "<html>"), (504, "{}"), (500, "{}")])
def test_what_may_have_been_done_is_the_callers_to_judge(
    api: Api, client: Client, answer: tuple[int, str]
) -> None:
    api.answers = [answer, OK]
    with pytest.raises(ApiProblem) as caught:
        client.submit(JOB)
    assert (caught.value.status, caught.value.retry_after) == (answer[0], 0)
    assert len(api.asked) == 1


def test_a_refused_token_is_made_anew_once(api: Api) -> None:
    tokens = iter(["old", "new", "newer"])
    with Client(api.url, lambda: next(tokens)) as client:
        api.answers = [OK, EXPIRED, OK, EXPIRED, EXPIRED]
        client.get("j1")
        client.submit(JOB)
        with pytest.raises(NotAllowed):
            client.get("j1")
    sent = [headers["authorization"].split()[1] for _, _, headers, _ in api.asked]
    assert sent == ["old", "old", "new", "new", "newer"]


def test_a_fixed_token_that_is_refused_is_not_allowed(api: Api, client: Client) -> None:
    api.answers = [EXPIRED]
    with pytest.raises(NotAllowed, match="unauthorized"):
        client.get("j1")


def test_the_filters_of_a_list_are_sent(api: Api, client: Client) -> None:
    page = {"jobs": [views.JOB], "next": "t"}
    api.answers = [(200, json.dumps(page)), (200, json.dumps({"jobs": []}))]
    after = datetime(2026, 1, 2, tzinfo=UTC)
    found = client.jobs(
        state=["FAILED", "PAUSED"],
        operation="reindex",
        label={"team": "a:b", "run": "7"},
        created_after=after,
        created_before=after + timedelta(days=1),
    )
    assert [job.id for job in found] == ["j1"]
    asked = [parse_qsl(urlsplit(path).query) for _, path, _, _ in api.asked]
    filters = [
        ("state", "FAILED"),
        ("state", "PAUSED"),
        ("operation", "reindex"),
        ("label", "team:a:b"),
        ("label", "run:7"),
        ("created_after", "2026-01-02T00:00:00+00:00"),
        ("created_before", "2026-01-03T00:00:00+00:00"),
    ]
    assert asked == [[("limit", "200"), *filters], [("limit", "200"), ("page", "t"), *filters]]


def test_throttling_that_goes_on_is_a_problem(api: Api, client: Client) -> None:
    api.answers = [TOO_MANY] * 4
    with pytest.raises(ApiProblem, match="http_429"):
        client.get("j1")


@pytest.mark.parametrize("body", ["<html>", "[]", '{"id": 1}', ""])
def test_an_answer_of_something_else_is_no_job(api: Api, client: Client, body: str) -> None:
    api.answers = [(200, body)]
    with pytest.raises(Unreachable, match="does not answer like"):
        client.get("j1")


def test_items_come_over_as_many_pages_as_there_are(api: Api, client: Client) -> None:
    api.answers += [
        (200, json.dumps({"items": [{"id": "1", "reason": "r"}], "next": "t 1"})),
        (200, json.dumps({"items": [], "next": "t2"})),
        (200, json.dumps({"items": [{"id": "2", "reason": "r", "sink": "webhook"}]})),
    ]
    found = list(client.items("j1", "refused"))
    assert [(each.id, each.sink) for each in found] == [("1", None), ("2", "webhook")]
    assert [path for _, path, _, _ in api.asked] == [
        "/stage/v1/jobs/j1/items?outcome=refused",
        "/stage/v1/jobs/j1/items?outcome=refused&page=t+1",
        "/stage/v1/jobs/j1/items?outcome=refused&page=t2",
    ]


def test_a_retry_of_the_failed_records_and_a_report_say_so(api: Api, client: Client) -> None:
    api.answers += [OK, OK, (201, json.dumps(views.REPORT))]
    client.retry("j1")
    client.retry("j1", failed_only=True)
    assert client.report("j1", form="jsonl", outcome="failed").count == 1
    assert [(method, path) for method, path, _, _ in api.asked] == [
        ("POST", "/stage/v1/jobs/j1/retry"),
        ("POST", "/stage/v1/jobs/j1/retry?failed_only=true"),
        ("POST", "/stage/v1/jobs/j1/report?format=jsonl&outcome=failed"),
    ]


def test_the_example_of_the_page_runs(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    [source] = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    source, found = re.subn(r"https://abc[^\"]*", api.url, source)
    ended = {**views.JOB, "state": "SUCCEEDED", "failed": 1}
    old = {**views.JOB, "id": "old", "state": "FAILED", "end_reason": "too_many_failed"}
    items = {"items": [{"id": "007", "reason": "is not a number"}]}
    for answer in (views.JOB, ended, items, {"jobs": [old]}):
        api.answers.append((200, json.dumps(answer)))
    exec(compile(source, "client.md", "exec"), {"token": "t"})  # noqa: S102  that is the test
    assert found == 1
    assert capsys.readouterr().out == "007 is not a number\nold too_many_failed\n"
    assert b'"add":0.10' in api.asked[0][3]


def test_the_example_of_the_page_of_tables_runs(
    api: Api, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "lookup-table.md").read_text("utf-8")
    _, source = blocks(page, "python")
    [table] = blocks(page, "csv")
    (tmp_path / "rates.csv").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    offer = {
        "upload_id": "0" * 32,
        "url": f"{api.url}/file",
        "fields": {"key": "k"},
        "max_bytes": 1000,
        "expires_at": "2036-01-01T00:00:00.000Z",
    }
    api.answers += [(201, json.dumps(offer)), (204, ""), (202, json.dumps(views.JOB))]
    exec(compile(source, "lookup-table.md", "exec"), {"client": client})  # noqa: S102
    assert table.encode() in api.asked[1][3]
    params = {"rates": {"upload_id": "0" * 32}}
    assert json.loads(api.asked[2][3])["params"] == params


# --- a report's file --------------------------------------------------------------------------

CONTENT = "outcome,id,reason,sink\r\n"


def report(api: Api, content: str = CONTENT) -> ReportView:
    return ReportView.model_validate(
        {
            **views.REPORT,
            "url": f"{api.url}/reports/x?signed=1",
            "bytes": len(content),
            "sha256": hashlib.sha256(content.encode()).hexdigest(),
        }
    )


def test_a_report_replaces_an_older_one_and_the_token_stays_here(api: Api, tmp_path: Path) -> None:
    api.answers = [(200, CONTENT)]
    to, link = tmp_path / "r.csv", tmp_path / "link"
    to.write_text("older")
    link.symlink_to(to)
    pieces: list[int] = []
    fetch(report(api), link, got=pieces.append)
    assert to.read_bytes() == CONTENT.encode()
    assert link.is_symlink()
    assert sum(pieces) == len(CONTENT)
    [(method, path, headers, _)] = api.asked
    assert (method, path) == ("GET", "/stage/reports/x?signed=1")
    assert "authorization" not in headers
    assert sorted(tmp_path.iterdir()) == [link, to]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([(403, "expired")], "403: expired"),
        ([(200, CONTENT[:-1])], f"{len(CONTENT) - 1} of {len(CONTENT)} bytes"),
        ([(200, "x" * len(CONTENT))], "another SHA-256"),
        ([NO_REPLY] * 4, "Max retries"),
    ],
)
def test_a_report_that_does_not_come_whole_leaves_everything_as_it_was(
    api: Api, tmp_path: Path, answers: list[tuple[int, str]], why: str
) -> None:
    api.answers = answers
    to = tmp_path / "r.csv"
    to.write_text("older")
    with pytest.raises(NotDownloaded, match=why) as caught:
        fetch(report(api), to, got=lambda _: None)
    assert report(api).url in str(caught.value)
    assert to.read_text() == "older"
    assert list(tmp_path.iterdir()) == [to]


def test_a_report_without_a_place_leaves_nothing(api: Api, tmp_path: Path) -> None:
    api.answers = [(200, CONTENT)]
    to = tmp_path / "taken"
    to.mkdir()
    with pytest.raises(OSError, match="taken"):
        fetch(report(api), to, got=lambda _: None)
    assert list(tmp_path.iterdir()) == [to]
