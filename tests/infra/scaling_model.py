"""What CloudWatch and Application Auto Scaling make of a template, minute by minute.

ECS reports its desired count ``LAG`` minutes late, as Container Insights may. Expressions are read
as CloudWatch's metric math, as far as the templates use it.
"""

from __future__ import annotations

import ast
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from .synthesis import Properties, Synthesised, referred

LAG: Final = 2
_COMPARE: Final = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}


@dataclass(frozen=True)
class Minute:
    """What the bulk queue reports for one minute."""

    visible: int
    in_flight: int


def simulate(stack: Synthesised, tasks: int, minutes: Iterable[Minute | None]) -> list[int]:
    """Desired tasks after each minute. None is a minute in which SQS reports nothing."""
    (target,) = stack.of("ApplicationAutoScaling::ScalableTarget").values()
    policies = stack.of("ApplicationAutoScaling::ScalingPolicy")
    watching = [
        (_Alarm(alarm), _Policy(policies[referred(action)]))
        for alarm in stack.of("CloudWatch::Alarm").values()
        for action in alarm.get("AlarmActions", [])
        if _is_policy(action, policies)
    ]
    assert watching
    counts = [tasks] * (LAG + 1)
    for now, minute in enumerate(minutes):
        seen = {
            "DesiredTaskCount": counts[-1 - LAG],
            "ApproximateNumberOfMessagesVisible": None if minute is None else minute.visible,
            "ApproximateNumberOfMessagesNotVisible": None if minute is None else minute.in_flight,
        }
        for alarm, policy in watching:
            over = alarm.observe(seen)
            if over is not None:
                tasks = policy.apply(tasks, over, now)
                tasks = max(target["MinCapacity"], min(target["MaxCapacity"], tasks))
        counts.append(tasks)
    return counts[LAG + 1 :]


def _is_policy(action: object, policies: dict[str, Properties]) -> bool:
    return isinstance(action, dict) and action.get("Ref") in policies


class _Alarm:
    def __init__(self, alarm: Properties) -> None:
        self._alarm = alarm
        self._breaches: deque[bool] = deque(maxlen=alarm["EvaluationPeriods"])
        self._names = {
            part["Id"]: part["MetricStat"]["Metric"]["MetricName"]
            for part in alarm["Metrics"]
            if "MetricStat" in part
        }
        periods = {
            part["MetricStat"]["Period"] for part in alarm["Metrics"] if part.get("MetricStat")
        }
        assert periods == {60}
        (expression,) = [part["Expression"] for part in alarm["Metrics"] if "Expression" in part]
        self._expression = ast.parse(expression, mode="eval").body

    def observe(self, seen: dict[str, int | None]) -> float | None:
        """How far the value is from the threshold when the alarm is on, else None."""
        values = {id_: seen[name] for id_, name in self._names.items()}
        value = _value(self._expression, values)
        if value is None:
            assert self._alarm["TreatMissingData"] == "missing"
            self._breaches.clear()
            return None
        threshold = self._alarm["Threshold"]
        self._breaches.append(_COMPARE[self._alarm["ComparisonOperator"]](value, threshold))
        on = len(self._breaches) == self._breaches.maxlen and all(self._breaches)
        return value - threshold if on else None


def _value(node: ast.expr, values: dict[str, int | None]) -> float | None:
    """None where a value is missing. What is not metric math that we know fails here."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.Call(func=ast.Name(id="FILL"), args=[inner, ast.Name(id="REPEAT")]):
            return _value(inner, values)
        case ast.Call(func=ast.Name(id="IF"), args=[test, yes, no]):
            holds = _value(test, values)
            return None if holds is None else _value(yes if holds else no, values)
        case ast.Call(func=ast.Name(id="CEIL"), args=[inner]):
            value = _value(inner, values)
            return None if value is None else math.ceil(value)
        case (
            ast.BinOp(left=left, op=op, right=right)
            | ast.Compare(left=left, ops=[op], comparators=[right])
        ):
            a, b = _value(left, values), _value(right, values)
            return None if a is None or b is None else _OPERATORS[type(op)](a, b)
    raise AssertionError(ast.dump(node))


_OPERATORS: Final[dict[type[ast.AST], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Div: lambda a, b: a / b,
    ast.Gt: lambda a, b: float(a > b),
    ast.Lt: lambda a, b: float(a < b),
}


@dataclass
class _Policy:
    """A step policy. While it cools down, what was started counts for a larger step, and nothing
    else is ended."""

    properties: Properties
    _until: int = 0
    _added: int = field(default=0)

    def apply(self, tasks: int, over: float, now: int) -> int:
        steps = self.properties["StepScalingPolicyConfiguration"]
        assert steps["AdjustmentType"] == "ChangeInCapacity"
        (adjustment,) = [
            int(step["ScalingAdjustment"]) for step in steps["StepAdjustments"] if _in(step, over)
        ]
        if now >= self._until:
            self._added = 0
        elif adjustment < 0:
            return tasks
        change = adjustment if adjustment < 0 else max(0, adjustment - self._added)
        if change:
            self._until = now + steps["Cooldown"] // 60
            self._added += max(0, change)
        return tasks + change


def _in(step: Properties, over: float) -> bool:
    low = step.get("MetricIntervalLowerBound", float("-inf"))
    high = step.get("MetricIntervalUpperBound", float("inf"))
    return bool(low <= over < high)
