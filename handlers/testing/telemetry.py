"""Telemetry that remembers every call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.job import Lane


@dataclass(frozen=True)
class Line:
    action: str
    fields: Mapping[str, object]


@dataclass(frozen=True)
class Measure:
    metric: str
    value: int
    """A count, or milliseconds."""
    lane: Lane | None = None
    operation: str | None = None


@dataclass(frozen=True)
class MemoryTelemetry:
    """``Telemetry`` as lists in the order of the calls."""

    lines: list[Line] = field(default_factory=list)
    counts: list[Measure] = field(default_factory=list)
    durations: list[Measure] = field(default_factory=list)

    def log(self, action: str, **fields: object) -> None:
        self.lines.append(Line(action, fields))

    def count(
        self, metric: str, value: int = 1, *, lane: Lane | None = None, operation: str | None = None
    ) -> None:
        self.counts.append(Measure(metric, value, lane, operation))

    def duration(
        self, metric: str, ms: int, *, lane: Lane | None = None, operation: str | None = None
    ) -> None:
        self.durations.append(Measure(metric, ms, lane, operation))

    def actions(self) -> list[str]:
        """The actions logged so far."""
        return [line.action for line in self.lines]

    def total(self, metric: str) -> int:
        """The sum of one count."""
        return sum(measure.value for measure in self.counts if measure.metric == metric)
