"""Every route of the API, through the real function on the real adapters."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.storage.transaction import Indeterminate
from handlers.jobs.words.job import EndReason, Lane
from handlers.jobs.words.states import State
from tests.handlers.deployment import TENANT, job
from tests.support.jobs import use_up

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

UNKNOWN = f"{0:032x}"
VERBS = ("cancel", "pause", "resume", "retry")


def test_a_job_is_accepted_and_found_where_the_answer_says(stack: Deployment) -> None:
    ids = stack.fill(3)
    answer = stack.create([*ids, ids[0]], labels={"who": "me"})
    assert answer.status == 202
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == f"/live/v1/jobs/{answer.body['id']}" == answer.body["url"]
    assert answer.headers["x-request-id"]
    shown = answer.body
    assert (shown["state"], shown["lane"], shown["total"], shown["duplicates"]) == (
        "QUEUED",
        "small",
        3,
        1,
    )
    assert (shown["progress"], shown["labels"]) == ({"percent": 0}, {"who": "me"})
    assert stack.call("GET", answer.headers["location"]).body == shown
    stack.run()
    after = stack.call("GET", answer.headers["location"])
    assert (after.status, after.body["state"], after.body["succeeded"]) == (200, "SUCCEEDED", 3)
    assert (after.body["progress"]["percent"], after.body["attempt"]) == (100, 1)
    assert after.body["dwell_ms"] >= 0
    assert stack.prices(ids) == {11}
    assert stack.messages(Lane.SMALL) == (0, 0)


def test_more_ids_than_the_small_lane_takes_go_to_the_bulk_lane(stack: Deployment) -> None:
    ids = [f"{n:040}" for n in range(1000)]
    answer = stack.create(ids)
    assert (answer.status, answer.body["lane"]) == (202, "bulk")
    assert stack.everything()["objects"] == [f"ids/{answer.body['id']}"]
    assert stack.messages(Lane.BULK) == (1, 0)
    stack.run(Lane.BULK)
    shown = stack.call("GET", answer.body["url"]).body
    assert (shown["state"], shown["skipped"]) == ("SUCCEEDED", 1000)
    assert stack.everything()["objects"] == []


def test_a_taken_subject_is_409_and_names_its_holder(stack: Deployment) -> None:
    ids = stack.fill(2)
    first = stack.created(ids)
    before = stack.everything()
    answer = stack.create(ids)
    assert (answer.status, answer.body["code"], answer.body["field"]) == (
        409,
        "subject_busy",
        "subject",
    )
    assert answer.body["active_job"] == {
        "id": first,
        "state": "QUEUED",
        "url": f"/live/v1/jobs/{first}",
    }
    assert stack.everything() == before
    assert stack.create(ids, "other").status == 202
    assert stack.create(ids, tenant="other").status == 202


def test_a_taken_subject_leaves_no_stored_ids_either(stack: Deployment) -> None:
    stack.created(["a"])
    before = stack.everything()
    assert stack.create([f"{n:040}" for n in range(1000)]).status == 409
    assert stack.everything() == before


def test_c93_the_four_verbs_and_their_repeats(stack: Deployment) -> None:
    id_ = stack.created(stack.fill(2))
    url = f"/v1/jobs/{id_}"
    for verb, status, state in (
        ("resume", 200, "QUEUED"),
        ("retry", 200, "QUEUED"),
        ("pause", 202, "PAUSED"),
        ("pause", 200, "PAUSED"),
        ("retry", 409, "PAUSED"),
        ("resume", 202, "QUEUED"),
    ):
        answer = stack.call("POST", f"{url}/{verb}")
        assert (answer.status, answer.body["state"]) == (status, state), verb
    use_up(stack.world, stack.job(id_))
    for _ in range(2):  # the message of before the pause, and the one of the resume
        stack.run()
    failed = stack.call("GET", url).body
    assert (failed["state"], failed["end_reason"]) == ("FAILED", EndReason.ATTEMPTS_EXHAUSTED)
    for verb in ("cancel", "pause", "resume"):
        answer = stack.call("POST", f"{url}/{verb}")
        assert (answer.status, answer.body["code"]) == (409, "not_possible")
        assert "FAILED" in answer.body["detail"]
    answer = stack.call("POST", f"{url}/retry")
    assert (answer.status, answer.body["state"], answer.body["attempt"]) == (202, "QUEUED", 0)
    answer = stack.call("POST", f"{url}/cancel")
    assert (answer.status, answer.body["state"]) == (202, "CANCELLED")
    again = stack.call("POST", f"{url}/cancel")
    assert (again.status, again.body["state"]) == (200, "CANCELLED")
    assert again.headers["location"] == f"/live{url}"


def test_a_retry_whose_subject_is_taken_names_the_holder(stack: Deployment) -> None:
    ids = stack.fill(1)
    failed = stack.created(ids, tolerated_failure_percent=0, params={"field": "no", "add": 1})
    stack.run()
    holder = stack.created(ids)
    before = stack.everything()
    answer = stack.call("POST", f"/v1/jobs/{failed}/retry")
    assert (answer.status, answer.body["active_job"]["id"]) == (409, holder)
    assert stack.everything() == before


def test_another_tenants_job_does_not_exist(stack: Deployment) -> None:
    id_ = stack.created(stack.fill(1))
    before = stack.everything()
    calls = [("GET", ""), *(("POST", f"/{verb}") for verb in VERBS)]
    answers = [stack.call(m, f"/v1/jobs/{id_}{path}", tenant="other") for m, path in calls]
    missing = [stack.call(m, f"/v1/jobs/{UNKNOWN}{path}") for m, path in calls]
    assert [a.status for a in answers] == [404] * 5
    # Nothing tells a job of somebody else from none at all.
    assert [a.body for a in answers] == [a.body for a in missing]
    assert stack.everything() == before


@pytest.mark.parametrize(
    "id_",
    [
        "x",
        "0" * 31,
        "0" * 33,
        UNKNOWN.upper() + "G",
        "%00",
        "é" * 32,
        "0" * 3000,
        "..",
        "JOB#1",
        " ",
    ],
)
def test_what_cannot_be_a_job_id_is_404_without_a_call(stack: Deployment, id_: str) -> None:
    with stack.counted() as calls:
        answers = [
            stack.call("GET", f"/v1/jobs/{id_}"),
            *(stack.call("POST", f"/v1/jobs/{id_}/{verb}") for verb in VERBS),
        ]
    assert {a.status for a in answers} == {404}
    assert {a.headers["content-type"] for a in answers} == {"application/problem+json"}
    assert calls == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/v1"), ("DELETE", "/v1/job"), ("PUT", f"/v1/jobs/{UNKNOWN}/none")],
)
def test_an_unknown_route_is_a_problem(stack: Deployment, method: str, path: str) -> None:
    answer = stack.call(method, path)
    assert (answer.status, answer.body["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("tenant", [None, ""])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/jobs"),
        ("GET", "/v1/jobs"),
        ("GET", f"/v1/jobs/{UNKNOWN}"),
        *(("POST", f"/v1/jobs/{UNKNOWN}/{verb}") for verb in VERBS),
    ],
)
def test_without_a_verified_tenant_nobody_gets_in(
    stack: Deployment, method: str, path: str, tenant: str | None
) -> None:
    headers = {"X-Tenant": TENANT, "tenant": TENANT}
    with stack.counted() as calls:
        answer = stack.call(
            method, path, {**job(["a"]), "tenant": TENANT}, tenant=tenant, headers=headers
        )
    assert (answer.status, answer.body["code"]) == (401, "unauthorized")
    assert calls == []


def test_a_body_in_base64_is_read(stack: Deployment) -> None:
    body = base64.b64encode(json.dumps(job(["ä"]), ensure_ascii=False).encode()).decode()
    answer = stack.call("POST", "/v1/jobs", body, isBase64Encoded=True)
    assert answer.status == 202
    assert stack.job(answer.body["id"]).ids == ("ä",)


@pytest.mark.parametrize("name", ["idempotency-key", "IDEMPOTENCY-KEY", "Idempotency-Key"])
def test_header_names_have_no_case(stack: Deployment, name: str) -> None:
    answers = [stack.create(["a"], headers={name: "k"}) for _ in range(2)]
    assert [a.status for a in answers] == [202, 202]
    assert answers[1].headers["idempotency-replayed"] == "true"


def test_a_dependency_that_is_down_is_503_and_says_whether_anything_happened(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise Indeterminate

    monkeypatch.setattr("handlers.web.create_job.submit", lost)
    answer = stack.create(["a"])
    assert (answer.status, answer.body["code"]) == (503, "unsettled")
    assert "nothing was changed" not in answer.body["detail"]
    assert int(answer.headers["retry-after"]) > 0


def test_an_unexpected_error_is_a_problem_without_its_details(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("handlers.web.create_job.submit", broken)
    answer = stack.create(["a"])
    assert (answer.status, answer.body["code"]) == (500, "internal")
    assert "secret" not in json.dumps(answer.body)
    assert "secret" in capsys.readouterr().out


def test_an_unreadable_job_is_left_out_of_the_list_and_logged(
    stack: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = stack.created(["a"]), stack.created(["a"], "other")
    stack.made.dynamodb.update_item(
        TableName="control",
        Key={"pk": {"S": f"JOB#{bad}"}, "sk": {"S": "JOB"}},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "state"},
        ExpressionAttributeValues={":s": {"S": "NONSENSE"}},
    )
    listed = stack.call("GET", "/v1/jobs").body["jobs"]
    assert [each["id"] for each in listed] == [good]
    assert "job_not_listed" in capsys.readouterr().out


@pytest.mark.parametrize("service", ["api", "small_lane", "recovery"])
def test_a_missing_setting_stops_the_start_and_is_named(
    stack: Deployment, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRLANE_CONTROL_TABLE")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", service)
    started = subprocess.run(
        [sys.executable, "-c", f"import handlers.{service}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert started.returncode != 0
    assert "FAIRLANE_CONTROL_TABLE" in started.stderr


def test_a_bulk_worker_does_not_start_on_a_broken_relation(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_TIMING_TAKEOVER_GRACE", "1")
    started = subprocess.run(
        [sys.executable, "-m", "handlers.bulk_worker"], capture_output=True, text=True, check=False
    )
    assert started.returncode != 0
    assert "takeover_grace = 1 must be greater than" in started.stderr


def test_a_held_job_says_what_it_waits_for(stack: Deployment) -> None:
    for n in range(stack.world.limits.tenant_slots_bulk):
        stack.created([f"r{i}" for i in range(101)], f"s{n}")
    shown = stack.create([f"r{i}" for i in range(101)], "one more").body
    assert (shown["state"], shown["waiting_reason"]) == (State.QUEUED, "tenant_limit")
    assert stack.messages(Lane.BULK) == (2, 0)
