"""A tenant's limits through the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handlers.aws.runtime import SystemRuntime
from handlers.jobs.transitions.quotas import set_most_active, set_slots
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from tests.handlers.deployment import TENANT, Answer, Deployment, deployed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    limits = Limits(chunk_size=1, tenant_slots_small=1, max_active_jobs_per_tenant=3)
    with deployed(monkeypatch, limits=limits) as stack:
        yield stack


def test_a_held_job_says_its_place_in_line(tight: Deployment) -> None:
    tight.fill(1)
    ids = [tight.created(["r00000"], f"s{n}") for n in range(3)]

    def places() -> list[tuple[object, object]]:
        views = [tight.call("GET", f"/v1/jobs/{id_}").body for id_ in ids]
        return [(view.get("waiting_reason"), view.get("queue_position")) for view in views]

    waiting = "tenant_limit"
    assert places() == [(None, None), (waiting, 1), (waiting, 2)]
    before = tight.call("GET", f"/v1/jobs/{ids[2]}").headers["etag"]
    tight.run()
    assert places() == [(None, None), (None, None), (waiting, 1)]
    assert tight.call("GET", f"/v1/jobs/{ids[2]}").headers["etag"] != before


def test_looking_at_a_job_that_is_not_held_costs_one_call(tight: Deployment) -> None:
    id_ = tight.created(["a"])
    with tight.counted() as calls:
        tight.call("GET", f"/v1/jobs/{id_}")
    assert calls == ["DynamoDB.GetItem"]


def test_c119_a_stopped_tenant_is_told_so(tight: Deployment) -> None:
    world = tight.world
    set_slots(world, TENANT, Lane.SMALL, 0)
    held = tight.created(["a"], "s0")
    view = tight.call("GET", f"/v1/jobs/{held}").body
    assert (view["waiting"]["reason"], view["queue_position"]) == ("tenant_stopped", 1)
    set_most_active(world, TENANT, 0)
    answer = tight.create(["a"], "s1")
    assert (answer.status, answer.body["code"], answer.body["limit"]) == (403, "tenant_stopped", 0)
    assert "retry-after" not in answer.headers


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
def test_too_many_jobs(tight: Deployment, headers: dict[str, str]) -> None:
    for n in range(3):
        tight.created(["a"], f"s{n}")
    before = tight.everything()
    with tight.counted() as calls:
        answer = tight.create(["a"], "s3", headers=headers)
    assert answer.status == 429
    assert answer.body["code"] == "too_many_jobs"
    assert answer.body["limit"] == 3
    assert int(answer.headers["retry-after"]) > 0
    assert tight.everything() == before
    assert "SQS.SendMessage" not in calls
    assert tight.create(["a"], "s3", tenant="other").status == 202
    set_most_active(tight.world, TENANT, 4)
    assert tight.create(["a"], "s3", headers=headers).status == 202


def test_a_retry_needs_room(tight: Deployment) -> None:
    tight.fill(2)
    failed = [
        tight.created(
            ["r00000", "r00001"],
            subject,
            params={"field": "none", "add": 1},
            tolerated_failure_percent=0,
            stop_when_hopeless=stops,
        )
        for subject, stops in (("early", True), ("late", False))
    ]
    for _ in failed:
        tight.run()
    for n in range(3):
        tight.created(["a"], f"s{n}")
    answers = [
        tight.call("POST", f"/v1/jobs/{job}/retry", query=query)
        for job, query in zip(failed, ({}, {"failed_only": "true"}), strict=True)
    ]
    assert [(a.status, a.body["code"]) for a in answers] == [(429, "too_many_jobs")] * 2


def test_lanes_show_a_limit_of_ones_own(tight: Deployment) -> None:
    set_slots(tight.world, TENANT, Lane.SMALL, 7)

    def limit(tenant: str) -> object:
        lanes = tight.call("GET", "/v1/lanes", tenant=tenant).body["lanes"]
        return {lane["lane"]: lane["yours"]["limit"] for lane in lanes}["small"]

    assert (limit(TENANT), limit("other")) == (7, 1)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """A deployment that answers ten requests of a tenant in ten seconds, and gives two uploads."""
    monkeypatch.setenv("FAIRLANE_TENANT_REQUESTS_PER_SECOND", "1")
    now = SystemRuntime().now()
    monkeypatch.setattr(SystemRuntime, "now", lambda _: now)  # no window ends within a test
    with deployed(monkeypatch, limits=Limits(max_uploads_per_tenant=2)) as stack:
        yield stack


def test_c106_a_tenant_sends_so_many_requests_and_is_told_when_to_come_back(
    hurried: Deployment,
) -> None:
    answers = [hurried.call("GET", "/v1/jobs") for _ in range(12)]
    assert [answer.status for answer in answers] == [200] * 10 + [429] * 2
    refused = answers[-1]
    assert refused.body["code"] == "throttled"
    assert 0 < int(refused.headers["retry-after"]) <= 10
    assert hurried.create(["a"]).status == 429
    assert hurried.call("GET", "/v1/jobs", tenant="other").status == 200


def test_c106_a_tenant_has_so_many_upload_addresses(hurried: Deployment) -> None:
    def upload(tenant: str = TENANT) -> Answer:
        return hurried.call("POST", "/v1/uploads", {"format": "jsonl"}, tenant=tenant)

    before = hurried.everything()
    assert [upload().status for _ in range(3)] == [201, 201, 429]
    refused = upload()
    assert (refused.body["code"], refused.body["limit"]) == ("too_many_uploads", 2)
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert upload("other").status == 201
    assert hurried.everything()["objects"] == before["objects"]
