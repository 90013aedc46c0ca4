"""The bulk lane's workers: how many, how they stop, what they may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.infra.grants import ROLES, listed, statements

from .scaling_model import Minute, simulate
from .synthesis import ROOT, Synthesised, app_and_stack, referred, settings_of

QUIET = Minute(visible=0, in_flight=0)
BUSY = [Minute(visible=0, in_flight=1)] * 30
WAITING = Minute(visible=1, in_flight=0)


def without_in_flight(stack: Synthesised) -> Synthesised:
    """The same stack scaled as others are: by waiting messages only."""
    for alarm in ("ScalingGrow", "ScalingShrink"):
        metrics = stack.properties("CloudWatch::Alarm", alarm)["Metrics"]
        blind: list[dict[str, Any]] = [
            {**part, "Expression": part["Expression"].replace(" + in_flight", "")}
            if "Expression" in part
            else part
            for part in metrics
        ]
        stack = stack.spoiled("CloudWatch::Alarm", alarm, Metrics=blind)
    return stack


def test_c20_the_last_worker_stays_while_it_works(other: Synthesised) -> None:
    assert simulate(other, 1, BUSY) == [1] * 30
    assert simulate(without_in_flight(other), 1, BUSY)[-1] == 0


def test_c20_as_many_stay_as_the_messages_in_flight_need(stack: Synthesised) -> None:
    busy = [Minute(visible=0, in_flight=6)] * 60  # two slots each
    assert simulate(stack, 3, busy) == [3] * 60
    assert simulate(without_in_flight(stack), 3, busy)[-1] == 1


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
    assert set().union(*watched) - {None} == {"AWS/SQS", "ECS/ContainerInsights"}
    assert "CPU" not in json.dumps(
        [a for id_, a in stack.of("CloudWatch::Alarm").items() if "Scaling" in id_]
    )


# --- histories: minutes of the queue, and the tasks that are wanted -----------------------------


def test_c22_one_message_starts_a_worker_where_none_is(other: Synthesised) -> None:
    assert simulate(other, 0, [WAITING]) == [1]
    at_a_hundred = other.spoiled("CloudWatch::Alarm", "ScalingGrow", Threshold=100)
    assert simulate(at_a_hundred, 0, [WAITING]) == [0]


def test_c22_an_empty_queue_keeps_the_least(stack: Synthesised, other: Synthesised) -> None:
    assert simulate(stack, 1, [QUIET] * 60) == [1] * 60
    assert simulate(other, 0, [QUIET] * 60) == [0] * 60


def test_c22_one_message_at_a_time_needs_one_worker(stack: Synthesised, other: Synthesised) -> None:
    for messages in (WAITING, BUSY[0]):
        assert simulate(stack, 1, [messages] * 30) == [1] * 30
        # From nothing to one: the next minutes know that it was started, though ECS reports late.
        assert simulate(other, 0, [messages] * 30) == [1] * 30


def test_c22_twelve_minutes_of_one_waiting_and_one_long_job_are_one_task(
    stack: Synthesised,
) -> None:
    trickle = [WAITING] * 12
    long_job = [Minute(visible=0, in_flight=1)] * 8 * 60
    assert set(simulate(stack, 1, [*trickle, *long_job])) == {1}
    # Ten tasks of an earlier rush are one within minutes, too.
    counts = simulate(stack, 10, [*trickle, *long_job])
    assert counts[30] == 1
    assert counts == sorted(counts, reverse=True)


def test_c22_a_rush_gets_the_most_and_ends_in_steps(stack: Synthesised) -> None:
    rush = [Minute(visible=500, in_flight=10)] * 10
    falling = [Minute(visible=0, in_flight=left) for left in range(10, -1, -1) for _ in range(10)]
    quiet = [QUIET] * 30
    counts = simulate(stack, 1, [*rush, *falling, *quiet])
    assert counts[9] == 10
    assert max(counts) == 10
    assert counts[-1] == 1
    after = counts[9:]
    assert after == sorted(after, reverse=True)
    for minute, tasks in zip(falling, counts[10:], strict=False):
        # Never fewer than hold a message.
        assert tasks * 2 >= minute.in_flight


@pytest.mark.parametrize(("waiting", "first"), [(4, 0), (5, 1), (8, 2), (20, 8), (100_000, 8)])
def test_c22_more_messages_start_more_workers_at_once(
    stack: Synthesised, waiting: int, first: int
) -> None:
    assert simulate(stack, 2, [Minute(visible=waiting, in_flight=0)]) == [2 + first]


def test_c22_a_pause_between_two_jobs_ends_no_worker(stack: Synthesised) -> None:
    assert simulate(stack, 7, [QUIET] * 4) == [7] * 4
    assert simulate(stack, 7, [QUIET] * 30)[-1] == 1


def test_a_queue_that_reports_nothing_changes_nothing(stack: Synthesised) -> None:
    assert simulate(stack, 3, [None] * 60) == [3] * 60
    assert simulate(stack, 3, [QUIET, QUIET, QUIET, None, QUIET, QUIET]) == [3] * 6


def test_growth_stops_at_the_maximum(stack: Synthesised) -> None:
    assert simulate(stack, 1, [Minute(visible=1000, in_flight=2)] * 30)[-1] == 10


# --- from no task at all, and on Spot ----------------------------------------------------------


def test_c22_whoever_sends_may_start_the_first_worker(
    stack: Synthesised, other: Synthesised
) -> None:
    for who in ("Api", "SmallLane", "Recovery"):
        assert starts(other, who)
        assert not starts(stack, who)
        variables = other.properties("Lambda::Function", f"{who}Function")["Environment"][
            "Variables"
        ]
        assert "FAIRLANE_BULK_SERVICE" in variables
    (task,) = other.of("ECS::TaskDefinition").values()
    assert "FAIRLANE_BULK_SERVICE" not in str(task)


def starts(stack: Synthesised, who: str) -> bool:
    return any(
        listed(statement["Action"]) == ["ecs:DescribeServices", "ecs:UpdateService"]
        and referred(statement["Resource"]).startswith("BulkLaneService")
        for statement in statements(stack, ROLES[who])
    )


def test_tasks_run_on_spot_as_far_as_that_is_asked(stack: Synthesised, dev: Synthesised) -> None:
    def strategy(of: Synthesised) -> list[tuple[str, int, int]]:
        (service,) = of.of("ECS::Service").values()
        return [
            (one["CapacityProvider"], one["Weight"], one.get("Base", 0))
            for one in service.get("CapacityProviderStrategy", [])
        ]

    assert strategy(stack) == []
    assert strategy(dev) == [("FARGATE_SPOT", 100, 0)]
    (providers,) = dev.of("ECS::ClusterCapacityProviderAssociations").values()
    assert set(providers["CapacityProviders"]) == {"FARGATE", "FARGATE_SPOT"}


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


def test_a_worker_that_cannot_work_is_seen_and_a_release_of_them_is_rolled_back(
    stack: Synthesised,
) -> None:
    (task,) = stack.of("ECS::TaskDefinition").values()
    (worker,) = task["ContainerDefinitions"]
    assert worker["HealthCheck"]["Command"] == ["CMD", "python", "-m", "handlers.health"]
    (service,) = stack.of("ECS::Service").values()
    breaker = service["DeploymentConfiguration"]["DeploymentCircuitBreaker"]
    assert breaker == {"Enable": True, "Rollback": True}


def test_a_worker_writes_to_its_scratch_volume_and_nowhere_else(stack: Synthesised) -> None:
    (task,) = stack.of("ECS::TaskDefinition").values()
    (worker,) = task["ContainerDefinitions"]
    assert worker["ReadonlyRootFilesystem"] is True
    (mount,) = worker["MountPoints"]
    assert (mount["ContainerPath"], mount["ReadOnly"]) == ("/tmp", False)
    assert task["Volumes"] == [{"Name": mount["SourceVolume"]}]


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


def test_the_image_can_start_from_a_digest() -> None:
    base = "public.ecr.aws/docker/library/python@sha256:" + "a" * 64
    app, _ = app_and_stack(settings_of(bulk_lane={"base_image": base}))
    (image,) = json.loads(
        next(Path(app.synth().directory).glob("*.assets.json")).read_text(encoding="utf-8")
    )["dockerImages"].values()
    assert image["source"]["dockerBuildArgs"] == {"BASE": base}
    first = [
        line
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ][:2]
    assert first[1] == "FROM ${BASE}"
    # Without the setting it starts from a digest as well.
    named = first[0].removeprefix("ARG BASE=")
    assert settings_of(bulk_lane={"base_image": named}).bulk_lane.base_image == named


def test_a_base_image_is_named_by_its_digest() -> None:
    with pytest.raises(ValueError, match=r"bulk_lane\.base_image"):
        settings_of(bulk_lane={"base_image": "python:3.13-slim"})
