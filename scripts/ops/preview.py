"""A dashboard as a picture: the body that CloudWatch gets, with the metrics of a local run.

A local AWS keeps no metrics. Those of Fairlane's own are in the logs, as the lines (EMF) that
CloudWatch would read. Those of AWS (queues, functions, tables) are nowhere: their graphs say so.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMNS: Final = 24
"""The width of a dashboard, in its own units."""
WIDE: Final = 0.7
HIGH: Final = 0.5
"""Inches of one unit, across and down."""
STEPS: Final = 40
"""A local run lasts minutes, so its picture has shorter periods than CloudWatch's minute."""
QUIET: Final = "#8a8f98"
SHORT: Final = 16
"""Characters of labels of which three stand side by side."""
_EMF: Final = '"_aws":'

Dimensions = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Sample:
    """at: epoch seconds."""

    namespace: str
    name: str
    dimensions: Dimensions
    at: float
    value: float


def samples_of(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples of every EMF line among these; what else a line has before it is left out."""
    for line in lines:
        begin = line.find("{")
        if begin < 0 or _EMF not in line:
            continue
        try:
            blob, _ = json.JSONDecoder().raw_decode(line[begin:])
            yield from _of_blob(blob)
        except (ValueError, KeyError, TypeError):
            continue  # a line cut off by a kill


def _of_blob(blob: Mapping[str, Any]) -> Iterator[Sample]:
    at = blob["_aws"]["Timestamp"] / 1000
    for directive in blob["_aws"]["CloudWatchMetrics"]:
        for metric in directive["Metrics"]:
            values = blob[metric["Name"]]
            for names in directive["Dimensions"] or [[]]:
                dimensions = frozenset((name, str(blob[name])) for name in names)
                for value in values if isinstance(values, list) else [values]:
                    yield Sample(
                        directive["Namespace"], metric["Name"], dimensions, at, float(value)
                    )


def samples_in(folder: Path) -> list[Sample]:
    """Of all log files of a local stack."""
    found: list[Sample] = []
    for log in sorted(folder.rglob("*.log")):
        with log.open(encoding="utf-8", errors="replace") as lines:
            found.extend(samples_of(lines))
    return found


def draw(body: Mapping[str, Any], samples: Sequence[Sample], *, title: str) -> Figure:
    """The widgets of a dashboard body where CloudWatch would put them."""
    widgets = body["widgets"]
    rows = max(widget["y"] + widget["height"] for widget in widgets)
    figure = Figure(figsize=(COLUMNS * WIDE, (rows + 1) * HIGH), dpi=100)
    run = _run_of(samples)
    length = f"{run.end - run.start:.0f} s" if samples else "no samples"
    figure.suptitle(
        f"{title}: {length} of a local run, periods of {run.period:.1f} s; "
        "grey: nothing was measured, which is so of all metrics of AWS itself",
        fontsize=12,
        y=1 - 0.3 / (rows + 1),
    )
    for widget in widgets:
        # Room for the legend below, and for the labels on the left.
        left = (widget["x"] + 0.75) / COLUMNS
        bottom = 1 - (1 + widget["y"] + widget["height"] - 1.55) / (rows + 1)
        width, height = (widget["width"] - 1.1) / COLUMNS, (widget["height"] - 2.5) / (rows + 1)
        axes = figure.add_axes((left, bottom, width, height))
        _widget(axes, widget["properties"], run)
    return figure


@dataclass(frozen=True)
class Run:
    samples: Mapping[tuple[str, str, Dimensions], Sequence[Sample]]
    start: float
    end: float

    @property
    def period(self) -> float:
        return max(1.0, (self.end - self.start) / STEPS)


def _run_of(samples: Sequence[Sample]) -> Run:
    by: dict[tuple[str, str, Dimensions], list[Sample]] = {}
    for sample in samples:
        by.setdefault((sample.namespace, sample.name, sample.dimensions), []).append(sample)
    times = [sample.at for sample in samples] or [0.0]
    return Run(by, min(times), max(times))


def _widget(axes: Axes, properties: Mapping[str, Any], run: Run) -> None:
    axes.set_title(properties.get("title", ""), fontsize=9, loc="left", fontweight="bold")
    axes.set_xlim(0, max(1.0, run.end - run.start))
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, color="#e5e7eb", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    lines = [(line, _points(line, run)) for line in _lines(properties.get("metrics", []))]
    if not any(points for _, points in lines):
        _nothing(axes, [line.label for line, _ in lines])
        return
    for line, points in lines:
        axes.plot(
            *(zip(*points, strict=True) if points else ([], [])),
            label=line.label if points else f"{line.label} (none)",
            linewidth=1.4,
            marker="o",
            markersize=2.5,
            color=line.color if points else QUIET,
        )
    limits = properties.get("annotations", {}).get("horizontal", [])
    for limit in limits:
        axes.axhline(limit["value"], color=limit.get("color", "red"), linestyle="--", linewidth=1)
        axes.annotate(
            f"{limit.get('label', '')} {limit['value']:g}",
            (0.01, limit["value"]),
            xycoords=("axes fraction", "data"),
            va="bottom",
            fontsize=7,
        )
    highest = max(value for _, points in lines for _, value in points)
    axes.set_ylim(0, 1.15 * max(1, highest, *(limit["value"] for limit in limits)))
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, -0.13),
        ncols=3 if max(len(line.label) for line, _ in lines) < SHORT else 2,
        fontsize=7,
        frameon=False,
        borderaxespad=0,
        columnspacing=1,
        handlelength=1.2,
    )


def _nothing(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_facecolor("#f6f7f8")
    axes.set_yticks([])
    axes.text(
        *(0.5, 0.5),
        "\n".join(["no samples of", *labels]),
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=QUIET,
        fontsize=7,
    )


@dataclass(frozen=True)
class Line:
    """One metric of a widget. namespace: None for an expression, which is not evaluated."""

    namespace: str | None
    name: str
    dimensions: Dimensions
    statistic: str
    label: str
    color: str | None


def _lines(metrics: Sequence[Sequence[Any]]) -> Iterator[Line]:
    for metric in metrics:
        words = [word for word in metric if isinstance(word, str)]
        given: Mapping[str, Any] = next((one for one in metric if isinstance(one, Mapping)), {})
        if given.get("visible") is False:
            continue
        statistic = given.get("stat", "Average")
        if not words:
            label = given.get("label", given.get("expression", ""))
            yield Line(None, "", frozenset(), statistic, label, None)
            continue
        namespace, name, *pairs = words
        dimensions = frozenset(zip(pairs[::2], pairs[1::2], strict=True))
        label = given.get("label", f"{name} {statistic}")
        yield Line(namespace, name, dimensions, statistic, label, given.get("color"))


def _points(line: Line, run: Run) -> list[tuple[float, float]]:
    """(seconds since the beginning, the statistic) of each period that has samples."""
    if line.namespace is None:
        return []
    periods: dict[int, list[float]] = {}
    for sample in _found(line, run):
        periods.setdefault(int((sample.at - run.start) / run.period), []).append(sample.value)
    return [
        (number * run.period, statistic_of(values, line.statistic))
        for number, values in sorted(periods.items())
    ]


def _found(line: Line, run: Run) -> Sequence[Sample]:
    return run.samples.get((line.namespace or "", line.name, line.dimensions), ())


def statistic_of(values: Sequence[float], name: str) -> float:
    """CloudWatch's statistic of that name: ``Sum``, ``p95`` and so on."""
    match name:
        case "Sum":
            return sum(values)
        case "Minimum":
            return min(values)
        case "Maximum":
            return max(values)
        case "SampleCount":
            return len(values)
        case _ if name.startswith("p"):
            ordered = sorted(values)
            rank = float(name[1:]) / 100 * (len(ordered) - 1)
            low = int(rank)
            high = min(low + 1, len(ordered) - 1)
            return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)
        case _:
            return statistics.fmean(values)
