"""The picture of a dashboard: which samples it finds in logs, and what it makes of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.metrics import Metric
from handlers.telemetry import EmfTelemetry
from scripts.ops.preview import Sample, draw, samples_in, samples_of, statistic_of

LANE = frozenset({("lane", "small")})


def board(*metrics: list[Any]) -> dict[str, Any]:
    properties = {"title": "small: dwell, ms", "metrics": list(metrics)}
    return {"widgets": [{"x": 0, "y": 0, "width": 6, "height": 6, "properties": properties}]}


def test_samples_are_read_from_the_lines_that_workers_write(tmp_path: Path) -> None:
    stream = io.StringIO()
    telemetry = EmfTelemetry(namespace="Fairlane", service="w", stream=stream)
    telemetry.duration(Metric.DWELL, 40, lane=Lane.SMALL, operation="adjust_number")
    telemetry.log("attempt_begun", job_id="j")
    text = f"2026-11-30 worker: {stream.getvalue()}{stream.getvalue()[:60]}\n"
    (tmp_path / "worker.log").write_text(text)
    found = samples_in(tmp_path)
    # As CloudWatch counts it: under the lane, and under lane and operation.
    assert {(one.namespace, one.name, one.value) for one in found} == {("Fairlane", "Dwell", 40.0)}
    assert {one.dimensions for one in found} == {LANE, LANE | {("operation", "adjust_number")}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Sum", 10), ("Average", 2.5), ("Minimum", 1), ("Maximum", 4), ("p50", 2.5), ("p100", 4)],
)
def test_statistics(name: str, expected: float) -> None:
    assert statistic_of([4, 1, 3, 2], name) == expected


def test_a_widget_shows_its_statistic_of_each_period() -> None:
    samples = [Sample("Fairlane", "Dwell", LANE, at, at * 10) for at in (0.0, 0.5, 100.0)]
    metric = ["Fairlane", "Dwell", "lane", "small", {"stat": "Maximum", "label": "max"}]
    [axes] = draw(board(metric), samples, title="Fairlane").axes
    assert axes.get_title(loc="left") == "small: dwell, ms"
    [line] = axes.get_lines()
    assert [tuple(point) for point in line.get_xydata()] == [(0, 5), (100, 1000)]
    assert line.get_label() == "max"


def test_a_metric_without_samples_says_so() -> None:
    metric = ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "small"]
    [axes] = draw(board(metric), [], title="Fairlane").axes
    [text] = axes.texts
    assert text.get_text() == "no samples of\nApproximateAgeOfOldestMessage Average"


def test_a_line_that_is_no_metric_is_left_out() -> None:
    lines = ["", "{", json.dumps({"message": '"_aws":'}), '{"_aws": {"Timestamp": 1}}']
    assert list(samples_of(lines)) == []
