"""What telemetry writes, read back the way CloudWatch reads it."""

from __future__ import annotations

import io
import itertools
import json
import signal
import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import Telemetry
from handlers.telemetry import EmfTelemetry, Lines

SERVICES = (f"service-{number}" for number in itertools.count())


def telemetry(stream: Any) -> EmfTelemetry:
    # Loggers live as long as the process; each test needs its own.
    return EmfTelemetry(namespace="Fairlane", service=next(SERVICES), stream=stream)


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    """What was written; every line has to be one JSON object."""
    text = out.getvalue()
    assert text.endswith("\n") or not text
    read = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(line, dict) for line in read)
    return read


def points(line: dict[str, Any]) -> list[tuple[dict[str, str], str, Any, str]]:
    """The metric points CloudWatch makes from an EMF line: dimensions, name, values, unit."""
    return [
        ({name: line[name] for name in names}, metric["Name"], line[metric["Name"]], metric["Unit"])
        for directive in line["_aws"]["CloudWatchMetrics"]
        for names in directive["Dimensions"]
        for metric in directive["Metrics"]
    ]


def test_it_is_the_port(out: io.StringIO) -> None:
    port: Telemetry = telemetry(out)

    port.log("something")
    assert lines(out)


def test_a_log_line_names_action_part_and_fields(out: io.StringIO) -> None:
    EmfTelemetry(namespace="Fairlane", service="named", stream=out).log(
        "job_created", tenant="acme", job_id="j1", items=3
    )

    (line,) = lines(out)
    assert line["action"] == line["message"] == "job_created"
    assert line["level"] == "INFO"
    assert line["service"] == "named"
    assert (line["tenant"], line["job_id"], line["items"]) == ("acme", "j1", 3)
    assert line["timestamp"].endswith("+00:00")


def test_a_log_line_says_who_wrote_it(out: io.StringIO) -> None:
    telemetry(out).log("something")

    assert lines(out)[0]["location"].startswith("test_a_log_line_says_who_wrote_it:")


def test_an_exception_is_logged_with_its_traceback(out: io.StringIO) -> None:
    try:
        dict[str, str]()["not there"]
    except KeyError as error:
        telemetry(out).log("went_wrong", tenant="acme", error=error)

    (line,) = lines(out)
    assert line["level"] == "ERROR"
    assert line["exception_name"] == "KeyError"
    assert "not there" in line["exception"]
    assert line["error"] == "'not there'"
    assert line["tenant"] == "acme"


def test_fields_may_have_any_name(out: io.StringIO) -> None:
    ours = ["message", "name", "level", "service", "timestamp", "args", "exc_info", "location"]
    free = ["logger", "fields", "stacklevel", "extra", "tenant"]

    telemetry(out).log("something", **dict.fromkeys([*ours, *free], "mine"))

    (line,) = lines(out)
    assert (line["message"], line["level"]) == ("something", "INFO")
    mine = {name for name, value in line.items() if value == "mine"}
    assert mine == {*free, *(f"{name}_" for name in ours)}


def test_fields_may_hold_anything(out: io.StringIO) -> None:
    telemetry(out).log(
        "something",
        number=Decimal("0.10"),
        lane=Lane.BULK,
        text='two\nlines, "quotes", \u2028, half a pair \ud800',
        names={"a"},
        nested={"deep": [1, {"x": None}], (1, 2): "a key JSON has no word for"},
    )

    (line,) = lines(out)
    assert line["number"] == "0.10"
    assert line["lane"] == "bulk"
    assert line["text"] == 'two\nlines, "quotes", \u2028, half a pair \ud800'
    assert line["nested"] == {"deep": [1, {"x": None}]}


@pytest.mark.parametrize("name", ["count", "duration"])
def test_a_metric_counts_under_lane_and_operation_and_under_lane(
    name: str, out: io.StringIO
) -> None:
    getattr(telemetry(out), name)("Items", 7, lane=Lane.SMALL, operation="set_fields")

    (line,) = lines(out)
    unit = {"count": "Count", "duration": "Milliseconds"}[name]
    assert points(line) == [
        ({"lane": "small", "operation": "set_fields"}, "Items", [7.0], unit),
        ({"lane": "small"}, "Items", [7.0], unit),
    ]
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Fairlane"
    assert isinstance(line["_aws"]["Timestamp"], int)


@pytest.mark.parametrize(
    ("dimensions", "expected"),
    [
        ({"lane": Lane.BULK}, [{"lane": "bulk"}]),
        ({"operation": "set_fields"}, [{"operation": "set_fields"}]),
        ({"lane": Lane.BULK, "operation": ""}, [{"lane": "bulk"}]),
        ({}, [{}]),
    ],
)
def test_a_metric_has_the_dimensions_that_are_known(
    dimensions: dict[str, Any], expected: list[dict[str, str]], out: io.StringIO
) -> None:
    telemetry(out).count("Takeovers", **dimensions)

    (line,) = lines(out)
    assert [point[0] for point in points(line)] == expected
    assert line["Takeovers"] == [1.0]


def test_nothing_but_lane_and_operation_becomes_a_dimension(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "elsewhere")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Elsewhere")

    telemetry(out).count("Items", lane=Lane.BULK, operation="o")

    (line,) = lines(out)
    assert set(line) == {"_aws", "lane", "operation", "Items"}
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Fairlane"


def test_threads_do_not_mix_their_lines_or_values() -> None:
    out = Torn()
    shared = telemetry(out)
    workers = 8

    def work(number: int) -> None:
        for step in range(50):
            shared.count("Items", number, lane=Lane.BULK, operation=f"o{number}")
            shared.log("step", worker=number, step=step, text="x" * 200)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    read = [json.loads(line) for line in "".join(out.parts).splitlines()]
    metrics = [line for line in read if "_aws" in line]
    assert len(metrics) == len(read) - len(metrics) == workers * 50
    assert all(line["Items"] == [float(line["operation"][1:])] for line in metrics)


class Torn:
    """A stream that writes in small pieces and lets other threads in between."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        for start in range(0, len(text), 64):
            self.parts.append(text[start : start + 64])
            time.sleep(0)
        return len(text)

    def flush(self) -> None:
        pass


def test_a_signal_handler_may_log_while_a_line_is_written() -> None:
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if "outer" in text:
                signal.raise_signal(signal.SIGUSR1)
            return super().write(text)

    out = Interrupted()
    shared = telemetry(out)
    before = signal.signal(signal.SIGUSR1, lambda *_: shared.count("Inner"))
    try:
        shared.log("outer")
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert [set(line) & {"Inner", "action"} for line in lines(out)] == [{"Inner"}, {"action"}]


class Unwilling:
    def __str__(self) -> str:
        raise ValueError("no words for it")


class Closed:
    """A stream whose reader is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_closed_stream_does_not_raise(capsys: pytest.CaptureFixture[str]) -> None:
    shared = telemetry(Closed())

    shared.count("Items")
    shared.duration("Dwell", 1)
    shared.log("something")
    shared.log("something", error=ValueError())


def test_a_field_without_words_does_not_raise(
    out: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = telemetry(out)
    circle: list[Any] = []
    circle.append(circle)

    shared.log("something", field=Unwilling())
    shared.log("something", field=circle)
    shared.log("after")

    assert lines(out)[-1]["action"] == "after"


@pytest.mark.parametrize(("metric", "value"), [("", 1), ("Items", 10**400), ("Items", "many")])
def test_what_cannot_be_a_metric_is_logged(metric: str, value: Any, out: io.StringIO) -> None:
    telemetry(out).count(metric, value)

    (line,) = lines(out)
    assert (line["level"], line["action"]) == ("ERROR", "telemetry_failed")
    assert line["about"] == metric


FIELDS = st.dictionaries(
    st.text(min_size=1).filter(lambda name: name not in ("self", "action")),
    st.none() | st.booleans() | st.integers() | st.text() | st.decimals() | st.binary(),
)


@given(st.text(), FIELDS)
def test_every_log_line_is_one_json_object(action: str, fields: dict[str, Any]) -> None:
    out = io.StringIO()

    telemetry(out).log(action, **fields)

    (line,) = lines(out)
    assert line["action"] == action


def test_without_a_stream_it_is_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    shared = telemetry(None)
    shared.count("Items")
    shared.log("something")

    metric, line = map(json.loads, capsys.readouterr().out.splitlines())
    assert metric["Items"] == [1.0]
    assert line["action"] == "something"


def test_standard_output_is_looked_up_at_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    Lines().write("here\n")

    assert capsys.readouterr().out == "here\n"
