"""What the dashboard shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch

from handlers.jobs.words.metrics import Metric

from .api import Api
from .bulk_lane import BulkLane
from .edge import Edge
from .lane import MINUTE, Lane
from .recovery import Recovery
from .scaling import task_count
from .settings import DeploySettings
from .small_lane import SmallLane
from .storage import Storage

QUIET: Final = "InQuietGroups"
"""Suffix of the metrics that leave out noisy tenants; CDK has no words for them."""
_PAIRS: Final = {
    "ApproximateAgeOfOldestMessage": "age of the oldest message, s",
    "ApproximateNumberOfMessagesVisible": "messages that wait",
    "ApproximateNumberOfMessagesNotVisible": "messages in flight",
}
"""Metrics of all tenants and of the quiet ones alone, and the titles of their graphs."""


@dataclass(frozen=True)
class Watched:
    small: Lane
    bulk: Lane
    small_lane: SmallLane
    bulk_lane: BulkLane
    api: Api
    recovery: Recovery
    storage: Storage
    edge: Edge | None = None

    @property
    def lanes(self) -> dict[str, Lane]:
        return {"small": self.small, "bulk": self.bulk}


@dataclass(frozen=True)
class Charts:
    """Of one deployment. namespace: of its own metrics."""

    _settings: DeploySettings
    _watched: Watched
    _namespace: str

    def rows(self) -> list[list[cloudwatch.IWidget]]:
        return [
            self._dwell(),
            self._times(),
            *self._fairness(),
            self._capacity(),
            self._outbox(),
            self._trouble(),
        ]

    def measure(self, measure: Metric, lane: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=self._namespace,
            metric_name=measure,
            dimensions_map={"lane": lane},
            statistic=statistic,
            period=MINUTE,
            label=f"{lane} {statistic}",
        )

    def _dwell(self) -> list[cloudwatch.IWidget]:
        slo = cloudwatch.HorizontalAnnotation(
            value=self._settings.small_lane.dwell_slo_ms, label="SLO", color=cloudwatch.Color.RED
        )
        return [
            *(
                _graph(
                    f"{lane}: dwell, ms",
                    [self.measure(Metric.DWELL, lane, p) for p in ("p50", "p95", "p99")],
                    annotations=[slo] if lane == "small" else [],
                )
                for lane in self._watched.lanes
            ),
            _graph(
                "Records settled, effects done",
                self._both((Metric.ITEMS, Metric.EFFECTS_DONE), "Sum"),
            ),
            _graph(
                "small: jobs that waited for a start; longest dwell, ms",
                [
                    self.measure(Metric.COLD_START, "small", "Sum").with_(label="cold starts"),
                    self.measure(Metric.DWELL, "small", "Maximum").with_(label="longest dwell"),
                ],
            ),
        ]

    def _fairness(self) -> list[list[cloudwatch.IWidget]]:
        return [
            [
                *(
                    _graph(
                        f"{name}: {title}",
                        [
                            lane.metric(metric).with_(label="all tenants"),
                            lane.metric(metric + QUIET).with_(label="quiet tenants"),
                        ],
                    )
                    for metric, title in _PAIRS.items()
                ),
                _graph(f"{name}: noisy tenants", [lane.metric("ApproximateNumberOfNoisyGroups")]),
            ]
            for name, lane in self._watched.lanes.items()
        ]

    def _capacity(self) -> list[cloudwatch.IWidget]:
        worker = self._watched.small_lane.function
        service = self._watched.bulk_lane.service
        return [
            _graph(
                "small: concurrency and throttles",
                [
                    worker.metric("ConcurrentExecutions", statistic="Maximum", period=MINUTE),
                    worker.metric_throttles(period=MINUTE),
                ],
            ),
            _graph(
                "bulk: backlog per worker",
                [
                    cloudwatch.MathExpression(
                        # No task at all is the same as one that has not started.
                        expression="backlog / MAX([tasks, 1])",
                        using_metrics={
                            "backlog": self._watched.bulk.metric(
                                "ApproximateNumberOfMessagesVisible"
                            ),
                            "tasks": task_count(service, "RunningTaskCount"),
                        },
                        period=MINUTE,
                        label="messages per task",
                    )
                ],
            ),
            _graph(
                "Chunk time p95, ms",
                [self.measure(Metric.CHUNK_TIME, lane, "p95") for lane in self._watched.lanes],
            ),
            _graph(
                "bulk: pace, percent of full",
                [self.measure(Metric.PACE, "bulk", each) for each in ("Minimum", "Average")],
            ),
        ]

    def _times(self) -> list[cloudwatch.IWidget]:
        return [
            *(
                _graph(
                    f"{lane}: {what} p50 and p95, ms",
                    [self.measure(measure, lane, p) for p in ("p50", "p95")],
                )
                for lane in self._watched.lanes
                for what, measure in (
                    ("in the queue", Metric.QUEUE_DWELL),
                    ("job", Metric.JOB_DURATION),
                )
            ),
        ]

    def _outbox(self) -> list[cloudwatch.IWidget]:
        """What is open, how late it is, and what recovery had to do."""
        opened = (
            Metric.DISPATCHES_OPEN,
            Metric.EFFECTS_OPEN,
            Metric.EFFECTS_WAITING,
            Metric.EVENTS_OPEN,
        )
        late = (Metric.OLDEST_DISPATCH, Metric.EFFECT_AGE, Metric.EVENT_AGE)
        done = (
            Metric.DISPATCHES_RECOVERED,
            Metric.JOBS_REDISPATCHED,
            Metric.DISPATCHES_PARKED,
            Metric.EFFECTS_PARKED,
            Metric.EFFECTS_REFUSED,
            Metric.EVENTS_PARKED,
        )
        failed = [
            self._gauge(Metric.RECOVERY_ITEM_FAILURES, "Sum"),
            self.measure(Metric.RECEIVES_FAILED, "bulk", "Sum").with_(label="bulk receives"),
            self._gauge(Metric.UNREADABLE_MESSAGES, "Sum"),
        ]
        return [
            _graph("Outbox: open", [self._gauge(measure) for measure in opened]),
            _graph("Outbox: ms late in recovery", self._both(late, "Maximum")),
            _graph("Recovery: sent again and given up", self._both(done, "Sum")),
            _graph("Failed: items of recovery, receives, messages", failed),
        ]

    def _both(self, measures: Sequence[Metric], statistic: str) -> list[cloudwatch.IMetric]:
        return [
            self.measure(measure, lane, statistic).with_(label=f"{lane} {measure.value}")
            for measure in measures
            for lane in self._watched.lanes
        ]

    def _gauge(self, measure: Metric, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Of both lanes together."""
        return cloudwatch.Metric(
            namespace=self._namespace,
            metric_name=measure,
            statistic=statistic,
            period=MINUTE,
            label=measure.value,
        )

    def _trouble(self) -> list[cloudwatch.IWidget]:
        counted = (
            Metric.REDELIVERIES_OF_ACTIVE,
            Metric.OWNERSHIP_LOST,
            Metric.TAKEOVERS,
            Metric.ATTEMPTS_EXHAUSTED,
            Metric.BEATS_FAILED,
            Metric.JOB_HUNG,
            Metric.NOT_UNDERSTOOD,
            Metric.DENIED,
        )
        rest = self._watched.api.rest
        return [
            _graph(
                "Dead letters",
                [
                    lane.dead_letter_metric().with_(label=name)
                    for name, lane in self._watched.lanes.items()
                ],
            ),
            *(
                _graph(
                    f"{lane}: ownership",
                    [
                        self.measure(measure, lane, "Sum").with_(label=measure.value)
                        for measure in counted
                    ],
                )
                for lane in self._watched.lanes
            ),
            _graph(
                "API and recovery: errors",
                [
                    rest.metric_server_error(period=MINUTE),
                    rest.metric_client_error(period=MINUTE),
                    self._watched.recovery.function.metric_errors(period=MINUTE),
                ],
            ),
        ]


def _graph(
    title: str,
    metrics: Sequence[cloudwatch.IMetric],
    annotations: Sequence[cloudwatch.HorizontalAnnotation] | None = None,
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=metrics,
        left_annotations=annotations,
        left_y_axis=cloudwatch.YAxisProps(min=0),
        width=6,
        height=6,
    )
