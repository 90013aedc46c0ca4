"""The bulk lane's workers: how many, how they stop, what they may do."""

from __future__ import annotations

from typing import Any

import pytest

from .scaling_model import Minute, simulate
from .synthesis import Synthesised

BUSY = [Minute(visible=0, in_flight=1)] * 30
EMPTY = [Minute(visible=0, in_flight=0)] * 30
WAITING = Minute(visible=1, in_flight=0)


def visible_only(stack: Synthesised) -> Synthesised:
    """The same stack with the scale-in alarm others have: it looks at waiting messages only."""
    metrics = stack.properties("CloudWatch::Alarm", "ScalingIdle")["Metrics"]
    blind: list[dict[str, Any]] = [
        {**part, "Expression": "waiting"} if "Expression" in part else part for part in metrics
    ]
    return stack.spoiled("CloudWatch::Alarm", "ScalingIdle", Metrics=blind)


def test_c20_a_message_in_flight_keeps_every_worker(stack: Synthesised) -> None:
    assert simulate(stack, 3, BUSY) == [3] * 30
    assert simulate(visible_only(stack), 3, BUSY)[-1] == 1


def test_c20_the_last_worker_stays_while_it_works(other: Synthesised) -> None:
    assert simulate(other, 1, BUSY) == [1] * 30
    assert simulate(visible_only(other), 1, BUSY)[-1] == 0


def test_c20_nothing_scales_by_cpu(stack: Synthesised) -> None:
    policies = stack.of("ApplicationAutoScaling::ScalingPolicy").values()
    assert {policy["PolicyType"] for policy in policies} == {"StepScaling"}
    watched = [
        {alarm.get("Namespace")}
        | {part.get("MetricStat", {}).get("Metric", {}).get("Namespace") for part in parts}
        for alarm in stack.of("CloudWatch::Alarm").values()
        if any("Ref" in action for action in alarm["AlarmActions"] if isinstance(action, dict))
        for parts in [alarm.get("Metrics", [])]
    ]
    assert len(watched) == 2
    assert set().union(*watched) - {None} == {"AWS/SQS"}


def test_c22_one_message_starts_a_worker_where_none_is(other: Synthesised) -> None:
    assert simulate(other, 0, [WAITING]) == [1]
    at_a_hundred = other.spoiled("CloudWatch::Alarm", "ScalingWaiting", Threshold=100)
    assert simulate(at_a_hundred, 0, [WAITING]) == [0]


@pytest.mark.parametrize(
    ("waiting", "added"), [(0, 0), (1, 1), (9, 1), (10, 2), (49, 2), (50, 4), (100_000, 4)]
)
def test_c22_more_messages_start_more_workers(stack: Synthesised, waiting: int, added: int) -> None:
    assert simulate(stack, 2, [Minute(visible=waiting, in_flight=4)]) == [2 + added]


def test_c22_without_messages_it_goes_back_to_the_minimum(
    stack: Synthesised, other: Synthesised
) -> None:
    assert simulate(stack, 7, EMPTY)[-1] == 1
    assert simulate(other, 7, EMPTY)[-1] == 0
    # Not at once: a pause between two jobs is no reason.
    assert simulate(stack, 7, EMPTY)[:14] == [7] * 14


def test_a_queue_that_reports_nothing_changes_nothing(stack: Synthesised) -> None:
    assert simulate(stack, 3, [None] * 60) == [3] * 60
    assert simulate(stack, 3, [*EMPTY[:14], None, *EMPTY[:14]]) == [3] * 29


def test_growth_stops_at_the_maximum(stack: Synthesised) -> None:
    assert simulate(stack, 1, [Minute(visible=1000, in_flight=2)] * 9)[-1] == 10


def test_a_deployment_does_not_set_the_number_of_tasks(stack: Synthesised) -> None:
    (service,) = stack.of("ECS::Service").values()
    assert "DesiredCount" not in service
    assert service["DeploymentConfiguration"]["MinimumHealthyPercent"] == 100


def test_the_worker_gets_the_signal_and_the_whole_stop_time(stack: Synthesised) -> None:
    (task,) = stack.of("ECS::TaskDefinition").values()
    (worker,) = task["ContainerDefinitions"]
    # Exec form: with a shell in between, Python never hears SIGTERM.
    assert worker["EntryPoint"] == ["python", "-m", "handlers.bulk_worker"]
    assert "Command" not in worker
    # An init process hands signals on: process 1 has no default for SIGTERM and would miss one.
    assert worker["LinuxParameters"]["InitProcessEnabled"] is True
    assert worker["StopTimeout"] == 120


def test_c112_a_worker_never_waits_for_its_log(stack: Synthesised) -> None:
    (task,) = stack.of("ECS::TaskDefinition").values()
    (worker,) = task["ContainerDefinitions"]
    options = worker["LogConfiguration"]["Options"]
    assert options["mode"] == "non-blocking"
    assert options["max-buffer-size"] == "26214400b"


def test_workers_take_nothing_from_outside(stack: Synthesised) -> None:
    (service,) = stack.of("ECS::Service").values()
    network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert network["AssignPublicIp"] == "DISABLED"
    (group,) = network["SecurityGroups"]
    used = stack.of("EC2::SecurityGroup")[group["Fn::GetAtt"][0]]
    assert "SecurityGroupIngress" not in used
