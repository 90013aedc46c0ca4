"""The noisy tenant on a deployed stack, against stand-ins of its API and of CloudWatch."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner

from fairlane_client import Client, JobView, NewJob
from fairlane_client.commands.app import app
from scripts.local.errors import LocalError
from scripts.ops.fair_queue import NOISY_GROUPS, SHOWN, most
from scripts.verify import noisy_on_aws
from scripts.verify.noisy_on_aws import Target, report, target, tokens_in
from tests.support.views import job_view

CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACE = Target("https://api.example/live", "small-queue")


@dataclass
class Deployed:
    """An API whose quiet tenants wait longer once the flood has come."""

    wait_ms: tuple[int, int]
    """Before the flood, and beside it."""
    jobs: dict[str, tuple[str, int]] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """The flood's requests are sent by many threads."""

    def submit(self, client: Client, job: NewJob, *, idempotency_key: str | None = None) -> JobView:
        with self.lock:
            flooded = any("flood" in subject for subject, _ in self.jobs.values())
            job_id = f"j{len(self.jobs)}"
            self.jobs[job_id] = (job.subject, self.wait_ms[flooded])
            self.ids |= set(job.ids or ())
        return self.view(job_id)

    def get(self, client: Client, job_id: str) -> JobView:
        return self.view(job_id)

    def cancel(self, client: Client, job_id: str) -> JobView:
        self.cancelled.append(job_id)
        return self.view(job_id)

    def view(self, job_id: str) -> JobView:
        subject, wait = self.jobs[job_id]
        started = CREATED + timedelta(milliseconds=wait)
        return job_view(
            job_id, subject=subject, state="SUCCEEDED", created_at=CREATED, started_at=started
        )

    def put_in(self, patch: pytest.MonkeyPatch) -> Deployed:
        for name in ("submit", "get", "cancel"):
            method = getattr(self, name)
            patch.setattr(Client, name, lambda *a, _m=method, **k: _m(*a, **k))
        return self


def run(patch: pytest.MonkeyPatch, before: int, beside: int, seen: Any = None) -> Any:
    api = Deployed((before, beside)).put_in(patch)
    values = {NOISY_GROUPS: [0.0, 1.0]} if seen is None else seen
    patch.setattr(noisy_on_aws, "most", lambda *_: {n: max(v) for n, v in values.items()})
    return api, report(PLACE, ["noisy", "a", "b"], object(), sleep=lambda _: None)  # type: ignore[arg-type]  # most is a stand-in


def test_others_that_start_as_ever_are_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    api, made = run(monkeypatch, 100, 190)
    assert made.ok
    assert len(api.jobs) == noisy_on_aws.FLOOD + 2 * noisy_on_aws.OTHERS
    assert len(api.cancelled) == noisy_on_aws.FLOOD
    assert all("no-record" in id_ for id_ in api.ids)


def test_others_that_wait_are_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = run(monkeypatch, 100, 210)
    assert [each.ok for each in made.parts[0].expectations] == [True, False, True]


def test_a_queue_without_fair_queue_metrics_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, made = run(monkeypatch, 100, 100, seen={})
    assert [each.ok for each in made.parts[0].expectations] == [True, True, False]


def test_the_most_of_each_metric_over_all_pages() -> None:
    client = boto3.client("cloudwatch", region_name="eu-west-1")
    with Stubber(client) as stub:
        page = {"Id": "m0", "Label": NOISY_GROUPS, "Values": [0.0, 1.0]}
        stub.add_response("get_metric_data", {"MetricDataResults": [page], "NextToken": "t"})
        page = {"Id": "m0", "Label": NOISY_GROUPS, "Values": [3.0]}
        empty = {"Id": "m1", "Label": SHOWN[1], "Values": []}
        stub.add_response("get_metric_data", {"MetricDataResults": [page, empty]})
        found = most(client, "small-queue", CREATED, CREATED + timedelta(minutes=3))
    assert found == {NOISY_GROUPS: 3.0}


def test_what_is_asked_of_cloudwatch() -> None:
    client = boto3.client("cloudwatch", region_name="eu-west-1")
    asked: list[Mapping[str, Any]] = []
    client.meta.events.register(
        "provide-client-params.cloudwatch.GetMetricData",
        lambda params, **_: asked.append(params),
    )
    with Stubber(client) as stub:
        stub.add_response("get_metric_data", {"MetricDataResults": []})
        most(client, "small-queue", CREATED, CREATED + timedelta(minutes=3))
    stats = [query["MetricStat"] for query in asked[0]["MetricDataQueries"]]
    assert [stat["Metric"]["MetricName"] for stat in stats] == list(SHOWN)
    assert {stat["Period"] for stat in stats} == {60}
    names = {json.dumps(stat["Metric"]["Dimensions"]) for stat in stats}
    assert names == {'[{"Name": "QueueName", "Value": "small-queue"}]'}
    assert asked[0]["StartTime"] == CREATED.replace(second=0)
    assert asked[0]["EndTime"] == CREATED.replace(second=0) + timedelta(minutes=4)


def test_a_stack_is_found_by_its_outputs() -> None:
    client = boto3.client("cloudformation", region_name="eu-west-1")
    outputs = [
        {"OutputKey": "ApiUrl", "OutputValue": "https://api.example/live/"},
        {"OutputKey": "SmallQueueUrl", "OutputValue": "https://sqs.example/1/small-queue"},
    ]
    described = {"StackName": "s", "CreationTime": CREATED, "StackStatus": "CREATE_COMPLETE"}
    with Stubber(client) as stub:
        stub.add_response("describe_stacks", {"Stacks": [{**described, "Outputs": outputs}]})
        assert target(client, "s") == PLACE
        stub.add_response("describe_stacks", {"Stacks": [described]})
        with pytest.raises(LocalError, match="SmallQueueUrl"):
            target(client, "s")


def test_two_tenants_at_least() -> None:
    assert tokens_in("a\n\n b \n") == ["a", "b"]
    with pytest.raises(LocalError, match="1 different"):
        tokens_in("a\na\n")


@pytest.mark.parametrize(
    "arguments", [["noisy-tenant", "--stack", "s"], ["lane-isolation", "--stack", "s"], ["--all"]]
)
def test_stack_and_tokens_go_together_with_this_scenario_only(
    arguments: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    file.write_text("a\nb\n")
    more = [] if "noisy-tenant" in arguments else ["--tokens", str(file)]
    assert CliRunner().invoke(app, ["verify", *arguments, *more]).exit_code == 2
