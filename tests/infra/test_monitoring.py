"""Alarms that come in time, on metrics that exist."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.writes import Index

from .synthesis import TOPIC, Properties, Synthesised, settings_of, synthesise


def metrics_of(alarm: Properties) -> list[Properties]:
    if "MetricName" in alarm:
        return [{"Metric": alarm, "Period": alarm["Period"]}]
    return [part["MetricStat"] for part in alarm["Metrics"] if "MetricStat" in part]


def dashboard(stack: Synthesised) -> str:
    (board,) = stack.of("CloudWatch::Dashboard").values()
    body = board["DashboardBody"]
    return body if isinstance(body, str) else json.dumps(body["Fn::Join"][1])


def alarms_on(stack: Synthesised, metric: str) -> Iterator[Properties]:
    for alarm in stack.of("CloudWatch::Alarm").values():
        if any(part["Metric"]["MetricName"] == metric for part in metrics_of(alarm)):
            yield alarm


def test_every_alarm_looks_each_minute_and_says_what_silence_means(stack: Synthesised) -> None:
    for id_, alarm in stack.of("CloudWatch::Alarm").items():
        assert {part["Period"] for part in metrics_of(alarm)} == {60}, id_
        assert "TreatMissingData" in alarm, id_
        assert alarm["AlarmDescription"], id_


def test_only_stopped_recovery_is_told_by_silence(stack: Synthesised) -> None:
    silent = [
        id_
        for id_, alarm in stack.of("CloudWatch::Alarm").items()
        if alarm["TreatMissingData"] == "breaching"
    ]
    assert len(silent) == 1
    assert "RecoveryStopped" in silent[0]


def test_the_dwell_alarm_is_the_slo_of_the_small_lane(stack: Synthesised) -> None:
    (alarm,) = (
        alarm for alarm in alarms_on(stack, Metric.DWELL) if "SmallDwell" in alarm["AlarmName"]
    )
    assert alarm["Threshold"] == settings_of().small_lane.dwell_slo_ms
    (part,) = metrics_of(alarm)
    assert part["Stat"] == "p95"
    assert part["Metric"]["Namespace"] == "Fairlane"
    assert part["Metric"]["Dimensions"] == [{"Name": "lane", "Value": "small"}]


@pytest.mark.parametrize(
    "metric",
    [
        "Throttles",
        "5XXError",
        "Errors",
        "Invocations",
        Metric.OLDEST_DISPATCH,
        "ApproximateAgeOfOldestMessageInQuietGroups",
    ],
)
def test_somebody_watches(stack: Synthesised, metric: str) -> None:
    assert list(alarms_on(stack, metric))


def test_no_alarm_calls_a_small_system_noisy(stack: Synthesised) -> None:
    # With fewer than ten tenants each has more than a tenth.
    assert not list(alarms_on(stack, "ApproximateNumberOfNoisyGroups"))


@pytest.mark.parametrize(
    "shown",
    [
        *(f'"Dwell\\",\\"lane\\",\\"{lane}\\"' for lane in ("small", "bulk")),
        "ApproximateNumberOfNoisyGroups",
        "ApproximateNumberOfMessagesVisibleInQuietGroups",
        "ApproximateNumberOfMessagesNotVisibleInQuietGroups",
        "ApproximateAgeOfOldestMessageInQuietGroups",
        "ConcurrentExecutions",
        "p50",
        "p95",
        "p99",
    ],
)
def test_the_dashboard_shows(stack: Synthesised, shown: str) -> None:
    assert shown in dashboard(stack)


@pytest.mark.parametrize("measure", Metric)
def test_every_measure_is_charted(stack: Synthesised, measure: Metric) -> None:
    assert f'\\"{measure.value}\\"' in dashboard(stack)


def test_alarms_reach_the_topic_and_scaling_does_not(other: Synthesised, dev: Synthesised) -> None:
    topic = TOPIC
    told = {
        id_
        for id_, alarm in other.of("CloudWatch::Alarm").items()
        if topic in alarm.get("AlarmActions", [])
    }
    scaling = {id_ for id_ in other.of("CloudWatch::Alarm") if "Scaling" in id_}
    assert len(scaling) == 2
    assert told == set(other.of("CloudWatch::Alarm")) - scaling
    assert topic not in json.dumps(dev.template)


def test_throttles_of_indexes_count(stack: Synthesised) -> None:
    """DynamoDB counts them apart from those of the table."""
    (alarm,) = (
        alarm
        for alarm in alarms_on(stack, "WriteThrottleEvents")
        if alarm["AlarmName"].endswith("ControlThrottles")
    )
    watched = [
        {one["Name"] for one in part["Metric"]["Dimensions"]}
        | {one["Value"] for one in part["Metric"]["Dimensions"] if isinstance(one["Value"], str)}
        for part in metrics_of(alarm)
    ]
    for index in Index:
        assert {"TableName", "GlobalSecondaryIndexName", index.value} in watched
    # An alarm takes ten metrics at the most.
    assert len(alarm["Metrics"]) <= 10
    (expression,) = (part["Expression"] for part in alarm["Metrics"] if "Expression" in part)
    ids = {part["Id"] for part in alarm["Metrics"] if "MetricStat" in part}
    assert {f"FILL({id_}, 0)" for id_ in ids} == set(expression.split(" + "))


def test_thresholds_are_settings() -> None:
    chosen = {
        "dispatch_late_minutes": 7,
        "recovery_late_minutes": 30,
        "in_flight": 5_000,
        "receives_failed": 50,
        "throttled_minutes": 9,
    }
    other = synthesise(settings_of(alarms=chosen)).of("CloudWatch::Alarm").values()
    found = {str(alarm.get("AlarmName")).removeprefix("Fairlane-"): alarm for alarm in other}
    assert found["SmallDispatches"]["Threshold"] == 7 * 60_000
    assert found["BulkEffectAge"]["Threshold"] == found["BulkEventAge"]["Threshold"] == 30 * 60_000
    assert found["SmallInFlight"]["Threshold"] == 5_000
    assert found["BulkReceivesFailed"]["Threshold"] == 50
    assert found["IdempotencyThrottles"]["EvaluationPeriods"] == 9
