"""docs/reference/metrics.md: what is measured, from the names and from the calls that measure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from handlers.jobs.storage.backlog import BACKLOG_METRICS, MAX_COUNTED
from handlers.jobs.words.metrics import Metric

from .docstrings import table, under
from .source import calls
from .words import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

ABOUT: Final = f"""\
# Metrics

Every process writes its metrics as lines of CloudWatch's embedded metric format. Their namespace
is the stack's name. The dimensions are the lane and the operation, never the tenant: a metric
with both counts under `lane` alone, too. Those that count open rows stop at {MAX_COUNTED:,} of
each shard. The [runbook](../runbook.md) has the alarms.
"""
HEADS: Final = ("metric", "unit", "dimensions", "what it is")
UNITS: Final = {"count": "count", "duration": "ms"}


def page() -> str:
    return f"{ABOUT}\n{table(HEADS, (_row(metric) for metric in Metric))}"


def texts() -> Mapping[str, str]:
    """Name of the member -> what it is."""
    return {**under(Metric), **METRICS}


def _row(metric: Metric) -> tuple[str, ...]:
    unit, dimensions = _emitted()[metric.name]
    return f"`{metric.value}`", unit, dimensions, texts()[metric.name]


def _emitted() -> Mapping[str, tuple[str, str]]:
    """Name of the member -> its unit, and the dimensions it has."""
    found = {}
    for call in calls("handlers"):
        match call:
            case ast.Call(func=ast.Attribute(attr=attr), args=[first, *_]) if attr in UNITS:
                words = [keyword.arg for keyword in call.keywords if keyword.arg]
                for name in _members(first):
                    found[name] = UNITS[attr], ", ".join(f"`{word}`" for word in words) or "none"
    # The calls of these name no member: they go through a table.
    return {metric.name: ("count", "none") for metric in BACKLOG_METRICS.values()} | found


def _members(node: ast.expr) -> list[str]:
    return [
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and getattr(each.value, "id", "") == "Metric"
    ]
