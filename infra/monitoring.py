"""The dashboard and the alarms that are not a single lane's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from handlers.jobs.measures import Measure

from .api import Api
from .bulk_lane import BulkLane
from .lane import MINUTE, Lane
from .recovery import Recovery
from .settings import DeploySettings
from .small_lane import SmallLane

_ABOVE: Final = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_LATE_DISPATCH_MS: Final = 3 * 60_000
"""Recovery had two runs to send it, and could not."""
_LATE_EFFECT_MS: Final = 10 * 60_000
"""Past the time at which recovery meant to try it: it does not get round to all of them."""
_QUIET: Final = "InQuietGroups"
"""Suffix of the metrics that leave out noisy tenants; CDK has no words for them."""
_PAIRS: Final = (
    "ApproximateAgeOfOldestMessage",
    "ApproximateNumberOfMessagesVisible",
    "ApproximateNumberOfMessagesNotVisible",
)


@dataclass(frozen=True)
class Watched:
    small: Lane
    bulk: Lane
    small_lane: SmallLane
    bulk_lane: BulkLane
    api: Api
    recovery: Recovery

    @property
    def lanes(self) -> dict[str, Lane]:
        return {"small": self.small, "bulk": self.bulk}


class Monitoring(Construct):
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: DeploySettings,
        watched: Watched,
        namespace: str,
    ) -> None:
        super().__init__(scope, id_)
        self._settings = settings
        self._watched = watched
        self._namespace = namespace
        self.dashboard: Final = cloudwatch.Dashboard(
            self,
            "Dashboard",
            period_override=cloudwatch.PeriodOverride.INHERIT,
            widgets=[self._dwell(), *self._fairness(), self._capacity(), self._trouble()],
        )
        self._lane_alarms()
        self._machine_alarms()

    def _measure(self, measure: Measure, lane: str, statistic: str) -> cloudwatch.Metric:
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
                    [self._measure(Measure.DWELL, lane, p) for p in ("p50", "p95", "p99")],
                    annotations=[slo] if lane == "small" else [],
                )
                for lane in self._watched.lanes
            ),
            _graph(
                "Items settled",
                [self._measure(Measure.ITEMS, lane, "Sum") for lane in self._watched.lanes],
            ),
        ]

    def _fairness(self) -> list[list[cloudwatch.IWidget]]:
        return [
            [
                *(
                    _graph(f"{name}: {metric}", [lane.metric(metric), lane.metric(metric + _QUIET)])
                    for metric in _PAIRS
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
                            "tasks": cloudwatch.Metric(
                                namespace="ECS/ContainerInsights",
                                metric_name="RunningTaskCount",
                                dimensions_map={
                                    "ClusterName": service.cluster.cluster_name,
                                    "ServiceName": service.service_name,
                                },
                                statistic="Maximum",
                                period=MINUTE,
                            ),
                        },
                        period=MINUTE,
                        label="messages per task",
                    )
                ],
            ),
            _graph(
                "Chunk time p95, ms",
                [self._measure(Measure.CHUNK_TIME, lane, "p95") for lane in self._watched.lanes],
            ),
        ]

    def _trouble(self) -> list[cloudwatch.IWidget]:
        counted = (
            Measure.REDELIVERIES_OF_ACTIVE,
            Measure.OWNERSHIP_LOST,
            Measure.TAKEOVERS,
            Measure.ATTEMPTS_EXHAUSTED,
        )
        rest = self._watched.api.rest
        return [
            _graph(
                "Dead letters", [lane.dead_letter_metric() for lane in self._watched.lanes.values()]
            ),
            *(
                _graph(
                    f"{lane}: ownership",
                    [
                        self._measure(measure, lane, "Sum").with_(label=measure.value)
                        for measure in counted
                    ],
                )
                for lane in self._watched.lanes
            ),
            *(
                _graph(title, [self._measure(m, lane, statistic) for lane in self._watched.lanes])
                for title, m, statistic in (
                    ("Effects parked", Measure.EFFECTS_PARKED, "Sum"),
                    ("Effects: ms late in recovery", Measure.EFFECT_AGE, "Maximum"),
                )
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

    def _lane_alarms(self) -> None:
        watched = self._watched
        slo = self._settings.small_lane.dwell_slo_ms
        self._alarm(
            "SmallDwell",
            "Small jobs start later than promised.",
            self._measure(Measure.DWELL, "small", "p95"),
            above=slo,
            periods=3,
        )
        self._alarm(
            "SmallQuietAge",
            "Jobs of quiet tenants grow old in the small queue: nobody measures a dwell there yet.",
            watched.small.metric("ApproximateAgeOfOldestMessage" + _QUIET),
            above=max(60, slo // 1000),
            periods=3,
        )
        for lane in watched.lanes:
            self._alarm(
                f"{lane.capitalize()}Dispatches",
                "Jobs wait to be put into their queue, and recovery does not manage to.",
                self._measure(Measure.OLDEST_DISPATCH, lane, "Maximum"),
                above=_LATE_DISPATCH_MS,
            )
            self._alarm(
                f"{lane.capitalize()}EffectsParked",
                "Something outside refused an effect for hours; it waits for a replay.",
                self._measure(Measure.EFFECTS_PARKED, lane, "Sum"),
            )
            self._alarm(
                f"{lane.capitalize()}EffectAge",
                "Effects wait for recovery longer than they should.",
                self._measure(Measure.EFFECT_AGE, lane, "Maximum"),
                above=_LATE_EFFECT_MS,
                periods=3,
            )

    def _machine_alarms(self) -> None:
        watched = self._watched
        worker, recovery = watched.small_lane.function, watched.recovery.function
        self._alarm(
            "SmallThrottles",
            "The small lane is refused the concurrency it was given.",
            worker.metric_throttles(period=MINUTE),
        )
        self._alarm(
            "ApiThrottles",
            "API invocations are refused for want of concurrency in the account.",
            watched.api.function.metric_throttles(period=MINUTE),
        )
        self._alarm(
            "ApiErrors",
            "The API answers with 5xx.",
            watched.api.rest.metric_server_error(period=MINUTE),
        )
        self._alarm(
            "RecoveryErrors",
            "Recovery fails: nothing is lost, but lost messages and dead leases wait.",
            recovery.metric_errors(period=MINUTE),
            periods=3,
        )
        cloudwatch.Alarm(
            self,
            "RecoveryStopped",
            alarm_description="Recovery has not run for five minutes.",
            metric=recovery.metric_invocations(period=MINUTE),
            threshold=1,
            evaluation_periods=5,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            # Here silence is the fault.
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def _alarm(
        self,
        id_: str,
        description: str,
        metric: cloudwatch.IMetric,
        *,
        above: float = 0,
        periods: int = 1,
    ) -> None:
        cloudwatch.Alarm(
            self,
            id_,
            alarm_description=description,
            metric=metric,
            threshold=above,
            evaluation_periods=periods,
            comparison_operator=_ABOVE,
            # Idle queues and functions report nothing.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


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
