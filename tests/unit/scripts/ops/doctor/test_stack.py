"""``fairlane doctor`` on a stack's resources: each thing it finds, beside a stack in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from handlers.jobs.words.job import Lane
from handlers.settings import WorkSettings
from infra.settings import PRODUCTION_TIMING
from scripts.ops.doctor.finding import Finding, Grade
from scripts.ops.doctor.stack import Function, Resources, Service, check_stack

TIMING: Final = PRODUCTION_TIMING
VARIABLES: Final = WorkSettings(
    control_table="control",
    records_table="records",
    idempotency_table="idempotency",
    payload_bucket="payloads",
    small_queue_url="small",
    bulk_queue_url="bulk",
    timing=TIMING,
).to_env()


def queue_of(lane: Lane) -> dict[str, str]:
    of = TIMING.lane(lane)
    redrive = {"deadLetterTargetArn": "arn:a", "maxReceiveCount": of.max_receive_count}
    return {
        "VisibilityTimeout": str(round(of.visibility)),
        "MessageRetentionPeriod": str(of.queue_retention),
        "RedrivePolicy": json.dumps(redrive),
    }


def letters_of(lane: Lane) -> dict[str, str]:
    return {"MessageRetentionPeriod": str(TIMING.lane(lane).dlq_retention)}


def function(part: str, **more: Any) -> Function:
    made = Function(part, VARIABLES, code="c1", runtime="python3.13", timeout=28)
    return replace(made, **more)


HEALTHY: Final = Resources(
    functions=(
        function("ApiFunction1", variables={**VARIABLES, "FAIRLANE_CALLER_AUTH": "token"}),
        function("ApiAuthorizerFunction2", variables={"FAIRLANE_AUTH_ISSUER": "i"}),
        function("SmallLaneFunction3", timeout=TIMING.function_timeout, reserved=110),
        function("RecoveryFunction4"),
    ),
    queues={lane: queue_of(lane) for lane in Lane},
    dead_letters={lane: letters_of(lane) for lane in Lane},
    mapping={
        "State": "Enabled",
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 100},
    },
    schedule="ENABLED",
    tables={"control": "ACTIVE", "control/due": "ACTIVE"},
    service=Service(desired=2, running=2),
)


def wrong(seen: Resources) -> list[Finding]:
    return [each for each in check_stack(seen) if each.grade is Grade.WRONG]


def with_function(part: str, **more: Any) -> Resources:
    changed = [replace(f, **more) if part in f.part else f for f in HEALTHY.functions]
    return replace(HEALTHY, functions=tuple(changed))


def with_variables(part: str, change: Mapping[str, str]) -> Resources:
    return with_function(part, variables={**VARIABLES, **change})


def with_mapping(**more: Any) -> Resources:
    return replace(HEALTHY, mapping={**(HEALTHY.mapping or {}), **more})


def with_queue(lane: Lane, **more: str) -> Resources:
    return replace(HEALTHY, queues={**HEALTHY.queues, lane: {**queue_of(lane), **more}})


def test_a_stack_in_order_is_healthy() -> None:
    assert wrong(HEALTHY) == []
    assert {each.check for each in check_stack(HEALTHY)} == {
        "settings",
        "versions",
        "timing",
        "small lane",
        "recovery",
        "tables",
        "bulk lane",
    }


CASES: Final[Mapping[str, tuple[Callable[[], Resources], str, str]]] = {
    "a setting that differs": (
        lambda: with_variables("ApiFunction", {"FAIRLANE_CONTROL_TABLE": "old"}),
        "settings",
        "FAIRLANE_CONTROL_TABLE differs between functions: old in ApiFunction1",
    ),
    "a setting that is gone": (
        lambda: with_function("RecoveryFunction", variables={}),
        "settings",
        "do not start with their settings",
    ),
    "other code": (
        lambda: with_function("SmallLane", code="c0"),
        "versions",
        "different code: c1: ApiFunction1",
    ),
    "another runtime": (
        lambda: with_function("ApiAuthorizer", runtime="python3.11"),
        "versions",
        "different runtime",
    ),
    "a function that failed": (
        lambda: with_function("ApiFunction", state="Failed"),
        "versions",
        "ApiFunction1 is Failed",
    ),
    "another visibility": (
        lambda: with_queue(Lane.SMALL, VisibilityTimeout="30"),
        "timing",
        "the small queue's VisibilityTimeout is 30",
    ),
    "another retention": (
        lambda: with_queue(Lane.BULK, MessageRetentionPeriod="60"),
        "timing",
        "the bulk queue's MessageRetentionPeriod is 60",
    ),
    "no redrive": (
        lambda: with_queue(Lane.BULK, RedrivePolicy=""),
        "timing",
        "the bulk queue has the redrive policy none",
    ),
    "dead letters kept too short": (
        lambda: replace(
            HEALTHY,
            dead_letters={**HEALTHY.dead_letters, Lane.SMALL: {"MessageRetentionPeriod": "60"}},
        ),
        "timing",
        "dead letters of the small lane are kept 60 s",
    ),
    "another time of the function": (
        lambda: with_function("SmallLane", timeout=3),
        "timing",
        "the small lane's function may run 3 s",
    ),
    "no mapping": (lambda: replace(HEALTHY, mapping=None), "small lane", "no event source mapping"),
    "a mapping that is off": (
        lambda: with_mapping(State="Disabled"),
        "small lane",
        "is Disabled: no small job starts",
    ),
    "a mapping that loses kept messages": (
        lambda: with_mapping(FunctionResponseTypes=[]),
        "small lane",
        "does not report single failures",
    ),
    "more messages than executions": (
        lambda: with_mapping(ScalingConfig={"MaximumConcurrency": 111}),
        "small lane",
        "up to 111 messages are given to 110",
    ),
    "no schedule": (lambda: replace(HEALTHY, schedule=None), "recovery", "no rule runs it"),
    "a schedule that is off": (
        lambda: replace(HEALTHY, schedule="DISABLED"),
        "recovery",
        "its rule is DISABLED",
    ),
    "recovery without concurrency": (
        lambda: with_function("RecoveryFunction", reserved=0),
        "recovery",
        "no concurrency",
    ),
    "a table that is not ready": (
        lambda: replace(HEALTHY, tables={"control": "ACTIVE", "control/due": "CREATING"}),
        "tables",
        "control/due is CREATING",
    ),
    "no worker": (
        lambda: replace(HEALTHY, service=Service(desired=2, running=0)),
        "bulk lane",
        "0 of 2 tasks run",
    ),
    "a failed deployment": (
        lambda: replace(HEALTHY, service=Service(2, 2, rollouts=("FAILED", "COMPLETED"))),
        "bulk lane",
        "its last deployment failed",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_in_words(case: str) -> None:
    seen, check, words = CASES[case]
    findings = [each for each in wrong(seen()) if each.check == check]
    assert any(words in each.what for each in findings), wrong(seen())


@pytest.mark.parametrize("case", [case for case in CASES if case != "a setting that is gone"])
def test_nothing_else_is_wrong_then(case: str) -> None:
    assert len(wrong(CASES[case][0]())) == 1


def test_a_broken_relation_names_both_settings() -> None:
    seen = with_variables("RecoveryFunction", {"FAIRLANE_TIMING_SMALL_HEARTBEAT": "1000"})
    said = " ".join(each.what for each in wrong(seen) if each.check == "settings")
    assert "heartbeat" in said
    assert "lease_ttl" in said


def test_a_deployment_under_way_and_a_lane_at_rest_are_not_wrong() -> None:
    moving = replace(HEALTHY, service=Service(2, 3, rollouts=("IN_PROGRESS", "COMPLETED")))
    resting = replace(HEALTHY, service=Service(0, 0))
    assert wrong(moving) == wrong(resting) == []
    assert any(each.grade is Grade.NOTE for each in check_stack(moving))
