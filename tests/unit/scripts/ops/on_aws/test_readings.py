"""What AWS says of fair queues, web ACL, protection and scaling, from answers as its API models
have them; and what becomes of a right that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import boto3
import pytest
from botocore.stub import Stubber

from scripts.ops import firewall
from scripts.ops.fair_queue import NOISY_GROUPS
from scripts.ops.firewall import Seen, Who
from scripts.ops.on_aws import readings
from scripts.ops.on_aws.readings import ALL, Readings, only_on_aws
from scripts.ops.on_aws.rows import Row, Verdict

START: Final = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
OUTPUTS: Final = {
    "ApiUrl": "https://abc123.execute-api.eu-west-1.amazonaws.com/live/",
    "SmallQueueUrl": "https://sqs.example/1/small",
    "BulkCluster": "bulk",
    "BulkService": "workers",
}
RESOURCES: Final = {
    "AWS::WAFv2::WebACL": {"Acl": "acl-1"},
    # A stack with the construct may have an API of the team's own.
    "AWS::ApiGateway::RestApi": {"Shop": "def456", "Api": "abc123"},
    "AWS::ApiGateway::Stage": {"Prod": "prod", "Live": "live"},
}
TASK: Final = "arn:aws:ecs:eu-west-1:123456789012:task/bulk/1"
TARGET: Final = {
    "ServiceNamespace": "ecs",
    "ResourceId": "service/bulk/workers",
    "ScalableDimension": "ecs:service:DesiredCount",
    "MinCapacity": 0,
    "MaxCapacity": 2,
    "RoleARN": "arn:aws:iam::123456789012:role/x",
    "CreationTime": START,
}
ALARM: Final = {"AlarmName": "a", "AlarmARN": "arn"}


class Stubs:
    """A client of each service, answered from a list."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[Any, Stubber]] = {}

    def client(self, service: str) -> Any:
        if service not in self.made:
            client = boto3.client(service, region_name="eu-west-1")  # type: ignore[call-overload]  # the name is a variable
            self.made[service] = client, Stubber(client)
            self.made[service][1].activate()
        return self.made[service][0]

    def of(self, service: str) -> Stubber:
        self.client(service)
        return self.made[service][1]


@pytest.fixture
def stubs() -> Stubs:
    return Stubs()


@pytest.fixture
def reading(stubs: Stubs) -> Iterator[Readings]:
    yield Readings(OUTPUTS, RESOURCES, clients=stubs)
    for _, stub in stubs.made.values():
        stub.assert_no_pending_responses()


def verdicts(reading: Readings) -> list[Verdict]:
    return [row.verdict for row in reading.rows]


@pytest.mark.parametrize(("values", "verdict"), [([0.0], Verdict.HELD), ([], Verdict.UNCHECKED)])
def test_a_queue_that_reports_its_noisy_groups_is_fair(
    reading: Readings, stubs: Stubs, values: list[float], verdict: Verdict
) -> None:
    result = {"Id": "m0", "Label": NOISY_GROUPS, "Values": values}
    stubs.of("cloudwatch").add_response("get_metric_data", {"MetricDataResults": [result]})
    reading.fair_queue(START)
    assert verdicts(reading) == [verdict]


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [([[True]], Verdict.HELD), ([[False], [True]], Verdict.HELD), ([[False]], Verdict.UNCHECKED)],
)
def test_a_task_that_works_is_protected(
    reading: Readings, stubs: Stubs, seen: list[list[bool]], verdict: Verdict
) -> None:
    for look in seen:
        tasks = [{"taskArn": TASK, "protectionEnabled": each} for each in look]
        stubs.of("ecs").add_response("list_tasks", {"taskArns": [TASK]})
        asked = {"cluster": "bulk", "tasks": [TASK]}
        stubs.of("ecs").add_response("get_task_protection", {"protectedTasks": tasks}, asked)
        reading.look_at_tasks()
    if verdict is Verdict.HELD:
        reading.look_at_tasks()  # it is known by now, and asks no more
    reading.protection()
    assert verdicts(reading) == [verdict]


def test_a_right_that_is_missing_is_said_once_and_ends_nothing(
    reading: Readings, stubs: Stubs
) -> None:
    refused = ("AccessDeniedException", "not authorized to perform: ecs:ListTasks")
    stubs.of("ecs").add_client_error("list_tasks", *refused, 400)
    reading.look_at_tasks()
    reading.look_at_tasks()
    reading.protection()
    scaling = stubs.of("application-autoscaling")
    scaling.add_client_error("describe_scalable_targets", "AccessDeniedException", "no", 400)
    reading.scaling()
    assert verdicts(reading) == [Verdict.UNCHECKED] * 2
    assert "could not be checked" in reading.rows[0].saw
    assert "ecs:ListTasks" in reading.rows[0].saw


@pytest.mark.parametrize(
    ("targets", "alarms", "verdict"),
    [
        ([TARGET], [[ALARM], [ALARM]], Verdict.HELD),
        ([TARGET], [[ALARM], []], Verdict.BROKEN),
        ([TARGET], [[ALARM]], Verdict.BROKEN),
        ([], [], Verdict.BROKEN),
    ],
)
def test_a_service_that_grows_and_shrinks_has_two_policies_with_an_alarm_each(
    reading: Readings,
    stubs: Stubs,
    targets: list[dict[str, Any]],
    alarms: list[list[dict[str, str]]],
    verdict: Verdict,
) -> None:
    common = {name: TARGET[name] for name in list(TARGET)[:3]} | {"CreationTime": START}
    policies = [
        {
            **common,
            "PolicyARN": "arn",
            "PolicyName": str(number),
            "PolicyType": "StepScaling",
            "Alarms": each,
        }
        for number, each in enumerate(alarms)
    ]
    stub = stubs.of("application-autoscaling")
    stub.add_response("describe_scalable_targets", {"ScalableTargets": targets})
    stub.add_response("describe_scaling_policies", {"ScalingPolicies": policies})
    reading.scaling()
    assert verdicts(reading) == [verdict]


def acl(action: str) -> dict[str, Any]:
    visible = {
        "SampledRequestsEnabled": False,
        "CloudWatchMetricsEnabled": True,
        "MetricName": "m",
    }
    rule = {
        "Name": "LargeBodyElsewhere",
        "Priority": 1,
        "Statement": {},
        "Action": {action: {}},
        "VisibilityConfig": visible,
    }
    return {
        "WebACL": {
            "Name": "Acl",
            "Id": "acl-1",
            "ARN": "arn:aws:wafv2:eu-west-1:123456789012:regional/webacl/Acl/acl-1",
            "DefaultAction": {"Allow": {}},
            "VisibilityConfig": visible,
            "Rules": [rule],
        }
    }


def looked_at(reading: Readings, stubs: Stubs, answer: dict[str, Any]) -> list[Row]:
    stage = "arn:aws:apigateway:eu-west-1::/restapis/abc123/stages/live"
    stub = stubs.of("wafv2")
    stub.add_response("get_web_acl_for_resource", answer, {"ResourceArn": stage})
    reading.firewall("https://api.example/live", lambda *_: {})
    return reading.rows


def test_a_web_acl_that_answers_as_it_should_holds(
    reading: Readings, stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {probe.path: probe for probe in firewall.probes() if probe.what in readings.PROBED}
    assert len(expected) == len(readings.PROBED)
    right = {path: Seen(probe.status, probe.who) for path, probe in expected.items()}
    monkeypatch.setattr(readings, "send", lambda _pool, _url, probe, _who: right[probe.path])
    assert {row.verdict for row in looked_at(reading, stubs, acl("Block"))} == {Verdict.HELD}
    assert len(reading.rows) == 3


def test_a_web_acl_that_refuses_a_large_job_does_not(
    reading: Readings, stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "send", lambda *_: Seen(413, Who.WAF))
    rows = looked_at(reading, stubs, acl("Block"))
    assert [row.verdict for row in rows] == [Verdict.HELD, Verdict.BROKEN, Verdict.HELD]


def test_a_web_acl_that_only_counts_is_not_expected_to_refuse(
    reading: Readings, stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "send", lambda *_: Seen(200, Who.API))
    rows = looked_at(reading, stubs, acl("Count"))
    assert [row.verdict for row in rows] == [Verdict.HELD] * 2
    assert "only counts" in rows[0].saw


def test_an_api_without_its_web_acl_is_broken_and_a_stack_without_one_is_not(
    reading: Readings, stubs: Stubs
) -> None:
    looked_at(reading, stubs, {})
    reading.resources = {}
    reading.firewall("https://api.example/live", lambda *_: {})
    assert verdicts(reading) == [Verdict.BROKEN, Verdict.UNCHECKED]


def test_a_local_stack_marks_what_only_aws_can_show() -> None:
    assert [(row.what, row.verdict) for row in only_on_aws()] == [
        (what, Verdict.ON_AWS) for what in ALL
    ]
