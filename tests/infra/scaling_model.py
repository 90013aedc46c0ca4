"""What CloudWatch and Application Auto Scaling make of a template, minute by minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .synthesis import Properties, Synthesised, referred

_COMPARE: Final = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}


@dataclass(frozen=True)
class Minute:
    """What the bulk queue reports for one minute."""

    visible: int
    in_flight: int

    def of(self, metric: str) -> int:
        return {
            "ApproximateNumberOfMessagesVisible": self.visible,
            "ApproximateNumberOfMessagesNotVisible": self.in_flight,
        }[metric]


def simulate(stack: Synthesised, tasks: int, minutes: Iterable[Minute | None]) -> list[int]:
    """Desired tasks after each minute. None is a minute without data: both scaling alarms of a
    sound template do nothing then. Cooldowns are left out: they only slow growth."""
    (target,) = stack.of("ApplicationAutoScaling::ScalableTarget").values()
    policies = stack.of("ApplicationAutoScaling::ScalingPolicy")
    alarms = [
        (_Alarm(alarm), policies[referred(action)])
        for alarm in stack.of("CloudWatch::Alarm").values()
        for action in alarm.get("AlarmActions", [])
        if _is_policy(action, policies)
    ]
    assert alarms
    counts = []
    for minute in minutes:
        for alarm, policy in alarms:
            over = alarm.observe(minute)
            if over is not None:
                tasks = _apply(policy, tasks, over)
                tasks = max(target["MinCapacity"], min(target["MaxCapacity"], tasks))
        counts.append(tasks)
    return counts


def _is_policy(action: object, policies: dict[str, Properties]) -> bool:
    return isinstance(action, dict) and action.get("Ref") in policies


class _Alarm:
    def __init__(self, alarm: Properties) -> None:
        assert all(period == 60 for period in _periods(alarm))
        self._alarm = alarm
        self._breaches: deque[bool] = deque(maxlen=alarm["EvaluationPeriods"])

    def observe(self, minute: Minute | None) -> float | None:
        """How far the value is from the threshold when the alarm is on, else None."""
        if minute is None:
            assert self._alarm["TreatMissingData"] in {"missing", "notBreaching"}
            self._breaches.clear()
            return None
        value = self._value(minute)
        threshold = self._alarm["Threshold"]
        self._breaches.append(_COMPARE[self._alarm["ComparisonOperator"]](value, threshold))
        on = len(self._breaches) == self._breaches.maxlen and all(self._breaches)
        return value - threshold if on else None

    def _value(self, minute: Minute) -> float:
        if "MetricName" in self._alarm:
            return minute.of(self._alarm["MetricName"])
        values = {}
        (expression,) = [part for part in self._alarm["Metrics"] if "Expression" in part]
        for part in self._alarm["Metrics"]:
            if "MetricStat" in part:
                values[part["Id"]] = minute.of(part["MetricStat"]["Metric"]["MetricName"])
        # Sums are all the arithmetic there is; anything else fails here.
        return sum(values[term.strip()] for term in expression["Expression"].split("+"))


def _periods(alarm: Properties) -> list[int]:
    if "MetricName" in alarm:
        return [alarm["Period"]]
    return [part["MetricStat"]["Period"] for part in alarm["Metrics"] if "MetricStat" in part]


def _apply(policy: Properties, tasks: int, over: float) -> int:
    steps = policy["StepScalingPolicyConfiguration"]
    adjustment = next(
        step["ScalingAdjustment"] for step in steps["StepAdjustments"] if _in(step, over)
    )
    if steps["AdjustmentType"] == "ExactCapacity":
        return int(adjustment)
    assert steps["AdjustmentType"] == "ChangeInCapacity"
    return tasks + int(adjustment)


def _in(step: Properties, over: float) -> bool:
    low = step.get("MetricIntervalLowerBound", float("-inf"))
    high = step.get("MetricIntervalUpperBound", float("inf"))
    # Bounds are inclusive on the threshold's side: below the threshold, the upper one.
    return bool(low <= over < high or low < over == high == 0)
