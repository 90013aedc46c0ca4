"""What answers say besides the job: tags, waiting times, progress, request ids, the active job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.words.job import Job, Lane, Waiting
from handlers.jobs.words.states import State
from handlers.web import views
from tests.handlers.deployment import TENANT
from tests.handlers.deployment import job as asked

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

NOW = 1_800_000_000_000


def job(**changed: Any) -> Job:
    made = Job(
        id=f"{1:032x}",
        tenant=TENANT,
        subject="s",
        operation="o",
        params="{}",
        lane=Lane.SMALL,
        state=State.QUEUED,
        total=100,
        fence=1,
        created_at=NOW - 60_000,
        admitted_at=NOW - 60_000,
    )
    return made.model_copy(update=changed)


def test_a_job_that_did_not_change_is_304_and_costs_no_body(stack: Deployment) -> None:
    id_ = stack.created(stack.fill(2))
    url = f"/v1/jobs/{id_}"
    first = stack.call("GET", url)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    for tags in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*", f" {tag} "):
        again = stack.call("GET", url, headers={"If-None-Match": tags})
        assert (again.status, again.body, again.headers["etag"]) == (304, None, tag), tags
        assert again.headers["retry-after"] == first.headers["retry-after"]
        assert again.headers["x-request-id"]
    for tags in ('"x"', tag[:-2] + '"', "", "W/"):
        assert stack.call("GET", url, headers={"If-None-Match": tags}).status == 200, tags
    stack.run()
    changed = stack.call("GET", url, headers={"if-none-match": tag})
    assert (changed.status, changed.body["state"]) == (200, "SUCCEEDED")
    assert changed.headers["etag"] != tag
    assert "retry-after" not in changed.headers


def test_a_tag_changes_with_the_job_and_not_with_the_time() -> None:
    running = job(state=State.RUNNING, started_at=NOW - 1000, position=10, succeeded=10)
    tags = {views.etag(views.job_view(running, NOW + later)) for later in (0, 1, 10**6)}
    assert len(tags) == 1
    moved = running.model_copy(update={"position": 11, "succeeded": 11})
    assert views.etag(views.job_view(moved, NOW)) not in tags


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({}, 1),
        ({"state": State.QUEUED, "waiting_reason": Waiting.TENANT_LIMIT}, 5),
        ({"retry_at": NOW + 4200, "waiting_reason": Waiting.RETRY}, 5),
        ({"retry_at": NOW + 10**9}, 30),
        ({"retry_at": NOW - 10**9}, 1),
        ({"state": State.PAUSED}, 30),
        ({"state": State.CANCELLING}, 1),
        ({"state": State.RUNNING}, 1),
        ({"state": State.RUNNING, "started_at": NOW - 10_000, "position": 10}, 9),
        ({"state": State.RUNNING, "started_at": NOW - 10**9, "position": 1}, 30),
        ({"state": State.RUNNING, "started_at": NOW - 1000, "position": 99}, 1),
        ({"state": State.RUNNING, "started_at": NOW - 1000, "position": 9, "total": None}, 1),
        ({"state": State.SETTLING}, 1),
        ({"state": State.SUCCEEDED}, None),
        ({"state": State.FAILED}, None),
        ({"state": State.CANCELLED}, None),
    ],
)
def test_when_to_ask_again(changed: dict[str, Any], seconds: int | None) -> None:
    assert views.look_again(job(**changed), NOW) == seconds


@pytest.mark.parametrize(
    ("changed", "progress"),
    [
        ({}, {"percent": 0}),
        ({"total": 0}, {"percent": 100}),
        ({"total": None}, None),
        (
            {"state": State.RUNNING, "started_at": NOW - 10_000, "position": 25},
            {"percent": 25, "per_second": 2.5, "eta_seconds": 30},
        ),
        (
            {"state": State.RUNNING, "started_at": NOW - 10_000, "position": 25, "total": None},
            {"per_second": 2.5},
        ),
        ({"state": State.RUNNING, "started_at": NOW, "position": 0}, {"percent": 0}),
        (
            {"state": State.RUNNING, "started_at": NOW + 5000, "position": 50},
            {"percent": 50, "per_second": 50_000, "eta_seconds": 1},
        ),
        (
            {"state": State.PAUSED, "started_at": NOW - 10_000, "position": 50},
            {"percent": 50, "per_second": 5},
        ),
        (
            {
                "state": State.SUCCEEDED,
                "started_at": NOW - 50_000,
                "finished_at": NOW - 30_000,
                "position": 100,
            },
            {"percent": 100, "per_second": 5},
        ),
        (
            {
                "state": State.SETTLING,
                "started_at": NOW - 10**6,
                "worked_ms": 20_000,
                "worked_until": NOW - 9 * 10**5,
                "position": 100,
            },
            {"percent": 100, "per_second": 5},
        ),
        ({"state": State.RUNNING, "started_at": NOW - 1, "position": 999, "total": 1000}, ...),
    ],
)
def test_progress(changed: dict[str, Any], progress: Any) -> None:
    shown = views.progress(job(**changed), NOW)
    if progress is ...:
        assert shown is not None
        assert shown["percent"] == 99  # not before it is
    else:
        assert shown == progress


def test_every_answer_has_a_request_id_that_is_in_the_log(
    stack: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [
        stack.create(["a"]),
        stack.create(["a"]),
        stack.call("GET", "/v1/jobs/x"),
        stack.call("GET", "/nowhere"),
        stack.call("GET", "/v1/jobs", tenant=None),
        stack.call("GET", "/v1/jobs"),
    ]
    assert [a.status for a in answers] == [202, 409, 404, 404, 401, 200]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    logged = [line for line in lines if line.get("action") == "request_answered"]
    assert [line["status"] for line in logged] == [a.status for a in answers]
    for line, answer in zip(logged, answers, strict=True):
        assert line["request_id"] == answer.headers["x-request-id"] != ""
        if answer.status >= 400:
            assert answer.body["request_id"] == line["request_id"]


def test_the_active_job_instead_of_409_where_that_is_wanted(stack: Deployment) -> None:
    ids = stack.fill(1)
    query = {"on_conflict": "return_existing"}
    body = asked(ids)
    made = stack.call("POST", "/v1/jobs", body, query=query)
    assert made.status == 202
    before = stack.everything()
    for headers in ({}, {"Idempotency-Key": "another"}):
        again = stack.call("POST", "/v1/jobs", body, query=query, headers=headers)
        assert (again.status, again.body) == (200, made.body)
        assert again.headers["location"] == made.headers["location"]
    assert stack.call("POST", "/v1/jobs", body, query={"on_conflict": "reject"}).status == 409
    # What was answered without being made is not remembered as made.
    after = stack.everything()
    assert after["control"] == before["control"]
    stack.run()
    key = {"Idempotency-Key": "another"}
    fresh = stack.call("POST", "/v1/jobs", body, query=query, headers=key)
    assert fresh.status == 202
    assert fresh.body["id"] != made.body["id"]
    assert stack.call("POST", "/v1/jobs", body, query=query, tenant="other").status == 202


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("POST", "/v1/jobs", {"on_conflict": "replace"}),
        ("POST", "/v1/jobs", {"validate_only": "yes"}),
        ("POST", "/v1/jobs", {"validate_only": ["true", "true"]}),
        ("POST", "/v1/jobs", {"dry_run": "true"}),
        ("POST", "/v1/uploads", {"x": ""}),
        ("GET", "/v1/operations", {"x": "1"}),
        ("GET", "/v1/lanes", {"tenant": "other"}),
        ("GET", "/v1/openapi.json", {"x": "1"}),
    ],
)
def test_an_unknown_or_bad_parameter_is_refused(
    stack: Deployment, method: str, path: str, query: dict[str, str | list[str]]
) -> None:
    before = stack.everything()
    answer = stack.call(method, path, {}, query=query)
    assert (answer.status, answer.body["field"]) == (400, next(iter(query)))
    assert stack.everything() == before
