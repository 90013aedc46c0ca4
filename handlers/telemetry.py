"""Telemetry: JSON log lines, and metrics as CloudWatch's embedded metric format (EMF).

Both go to standard output, one JSON object on each line: on Lambda and on ECS (``awslogs``)
CloudWatch turns EMF lines into metrics only when nothing else stands on them. The names of the
metrics are ``jobs.words.metrics.Metric``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .jobs.words.job import Lane

_one_line: Final = partial(json.dumps, default=str, skipkeys=True, separators=(",", ":"))

# Jobs run side by side in the bulk worker, and a signal handler may log in mid-line.
_WRITING: Final = threading.RLock()

_TAKEN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "action",
    "asctime",
    "exception",
    "exception_name",
    "level",
    "location",
    "message",
    "sampling_rate",
    "service",
    "stack_trace",
    "timestamp",
}
"""Keys of a line that are not the caller's; such a field gets an underscore after its name."""


class Lines:
    """A text stream that gets whole lines, from whichever thread."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _WRITING:
            return self._target.write(text)

    def flush(self) -> None:
        with _WRITING:
            self._target.flush()

    @property
    def _target(self) -> IO[str]:
        return self._stream or sys.stdout


def logger_of(service: str, stream: IO[str] | None = None) -> Logger:
    """A logger that writes one JSON object a line. ``POWERTOOLS_LOG_LEVEL`` sets its level.

    service: names the deployed part, such as ``bulk_worker``. There is one logger of each name.
    """
    return Logger(
        service=service,
        logger_handler=logging.StreamHandler(Lines(stream)),
        json_serializer=_one_line,
        utc=True,
        use_rfc3339=True,
    )


def log_line(logger: Logger, action: str, /, **fields: object) -> None:
    """One line about an action. A field that holds an exception makes the line an error, with the
    exception's traceback; all others are information."""
    _write(logger, action, fields)


def _write(logger: Logger, action: str, fields: Mapping[str, object]) -> None:
    error = next((value for value in fields.values() if isinstance(value, BaseException)), None)
    write = logger.error if error else logger.info
    write(
        action,
        exc_info=error,
        stacklevel=4,  # the caller of the caller: not this module
        extra={"action": action, **{_free(name): value for name, value in fields.items()}},
    )


def _free(name: str) -> str:
    return f"{name}_" if name in _TAKEN else name


class EmfTelemetry:
    """``Telemetry`` for every deployed part.

    Each metric counts under {lane, operation} and under {lane}, so that a lane can be charted and
    alarmed on as a whole. Nothing is gathered: Powertools' ``Metrics`` shares one state over all
    threads of a process, so each value is a line of its own. Never raises; what could not be
    written is logged as ``telemetry_failed`` when that is possible.
    """

    def __init__(self, *, namespace: str, service: str, stream: IO[str] | None = None) -> None:
        self.logger = logger_of(service, stream)
        self._namespace = namespace
        self._lines = Lines(stream)

    def log(self, action: str, **fields: object) -> None:
        try:
            _write(self.logger, action, fields)
        except Exception as error:  # noqa: BLE001  # a line is never worth a job
            self._failed(action, error)

    def count(
        self, metric: str, value: int = 1, *, lane: Lane | None = None, operation: str | None = None
    ) -> None:
        self._emit(metric, value, MetricUnit.Count, lane, operation)

    def duration(
        self, metric: str, ms: int, *, lane: Lane | None = None, operation: str | None = None
    ) -> None:
        self._emit(metric, ms, MetricUnit.Milliseconds, lane, operation)

    def _emit(
        self, metric: str, value: int, unit: MetricUnit, lane: Lane | None, operation: str | None
    ) -> None:
        try:
            line = _one_line(self._blob(metric, value, unit, lane, operation))
            self._lines.write(line + "\n")
            self._lines.flush()
        except Exception as error:  # noqa: BLE001  # a metric is never worth a job
            self._failed(metric, error)

    def _blob(
        self, metric: str, value: int, unit: MetricUnit, lane: Lane | None, operation: str | None
    ) -> object:
        # An empty service, or POWERTOOLS_SERVICE_NAME would become a dimension of its own.
        metrics = EphemeralMetrics(namespace=self._namespace, service="")
        metrics.add_metric(str(metric), unit, value)
        if lane:
            metrics.add_dimension("lane", lane.value)
        if operation:
            metrics.add_dimension("operation", operation)
        if lane and operation:
            metrics.add_dimensions(lane=lane.value)
        return metrics.serialize_metric_set()

    def _failed(self, what: str, error: Exception) -> None:
        with suppress(Exception):  # there is no other place to log it
            _write(self.logger, "telemetry_failed", {"about": what, "error": error})
