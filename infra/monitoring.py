"""The dashboard, and the alarms that are not a single lane's."""

from __future__ import annotations

from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from handlers.jobs.words.metrics import Metric

from .charts import QUIET, Charts, Watched
from .edge import Edge
from .lane import MINUTE, alarm_name
from .scaling import task_count
from .settings import DeploySettings
from .storage import INDEXES

_ABOVE: Final = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_MINUTE_MS: Final = 60_000


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
        charts = Charts(settings, watched, namespace)
        self._measure = charts.measure
        self._namespace = namespace
        self.dashboard: Final = cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=Stack.of(self).stack_name,
            period_override=cloudwatch.PeriodOverride.INHERIT,
            widgets=charts.rows(),
        )
        self._lane_alarms()
        self._machine_alarms()
        self._bulk_alarms()
        self._function_alarms()
        self._table_alarms()
        if watched.edge is not None:
            self._firewall_alarm(watched.edge)

    def _lane_alarms(self) -> None:
        watched = self._watched
        slo, alarms = self._settings.small_lane.dwell_slo_ms, self._settings.alarms
        late = alarms.recovery_late_minutes * _MINUTE_MS
        self._alarm(
            "SmallDwell",
            "Small jobs start later than promised.",
            self._measure(Metric.DWELL, "small", "p95"),
            above=slo,
            periods=3,
        )
        self._alarm(
            "SmallQuietAge",
            "The oldest message of a quiet tenant waits too long in the small queue.",
            watched.small.metric("ApproximateAgeOfOldestMessage" + QUIET),
            above=max(60, slo // 1000),
            periods=3,
        )
        for lane in watched.lanes:
            self._alarm(
                f"{lane.capitalize()}Dispatches",
                "Recovery has not sent a dispatch to its queue for too long.",
                self._measure(Metric.OLDEST_DISPATCH, lane, "Maximum"),
                above=alarms.dispatch_late_minutes * _MINUTE_MS,
            )
            self._alarm(
                f"{lane.capitalize()}DispatchesParked",
                "Messages of jobs could not be sent for hours: see fairlane dispatches list.",
                self._measure(Metric.DISPATCHES_PARKED, lane, "Sum"),
            )
            self._alarm(
                f"{lane.capitalize()}EffectsParked",
                "A sink failed for hours and its effect is parked: see fairlane effects list.",
                self._measure(Metric.EFFECTS_PARKED, lane, "Sum"),
            )
            self._alarm(
                f"{lane.capitalize()}EffectsRefused",
                "A sink refused records for good: the log effect_refused has the reason.",
                self._measure(Metric.EFFECTS_REFUSED, lane, "Sum"),
            )
            self._alarm(
                f"{lane.capitalize()}EffectAge",
                "Recovery runs open effects later than it should.",
                self._measure(Metric.EFFECT_AGE, lane, "Maximum"),
                above=late,
                periods=3,
            )
            self._alarm(
                f"{lane.capitalize()}Denied",
                "Jobs wait because the deployment lacks a permission.",
                self._measure(Metric.DENIED, lane, "Sum"),
            )
            self._alarm(
                f"{lane.capitalize()}EventsParked",
                "The event bus or an address did not take a job's event: see fairlane events list.",
                self._measure(Metric.EVENTS_PARKED, lane, "Sum"),
            )
            self._alarm(
                f"{lane.capitalize()}EventAge",
                "Recovery sends jobs' events later than it should.",
                self._measure(Metric.EVENT_AGE, lane, "Maximum"),
                above=late,
                periods=3,
            )

    def _machine_alarms(self) -> None:
        watched = self._watched
        worker, recovery = watched.small_lane.function, watched.recovery.function
        self._alarm(
            "SmallThrottles",
            "Lambda throttles the small lane's function.",
            worker.metric_throttles(period=MINUTE),
        )
        self._alarm(
            "ApiThrottles",
            "Lambda throttles the API's function: the account has no free concurrency.",
            watched.api.function.metric_throttles(period=MINUTE),
        )
        self._alarm(
            "ApiErrors",
            "The API answers with 5xx.",
            watched.api.rest.metric_server_error(period=MINUTE),
        )
        self._alarm(
            "RecoveryErrors",
            "Recovery fails: nothing is lost, but lost messages and expired leases wait.",
            recovery.metric_errors(period=MINUTE),
            periods=3,
        )
        cloudwatch.Alarm(
            self,
            "RecoveryStopped",
            alarm_name=alarm_name(self, "RecoveryStopped"),
            alarm_description="Recovery has not run for five minutes.",
            metric=recovery.metric_invocations(period=MINUTE),
            threshold=1,
            evaluation_periods=5,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            # Here silence is the fault.
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def _bulk_alarms(self) -> None:
        bulk, lane = self._settings.bulk_lane, self._watched.bulk
        minutes = bulk.late_minutes
        self._alarm(
            "BulkAge",
            f"A bulk message is older than {minutes} minutes: the lane is too small or stuck.",
            lane.metric("ApproximateAgeOfOldestMessage"),
            above=minutes * 60,
            periods=3,
        )
        self._alarm(
            "BulkDwell",
            f"Bulk jobs start more than {minutes} minutes late.",
            self._measure(Metric.DWELL, "bulk", "p95"),
            above=minutes * _MINUTE_MS,
            periods=3,
        )
        self._alarm(
            "BulkWithoutWorkers",
            "Bulk messages wait and no worker runs.",
            cloudwatch.MathExpression(
                expression="IF(waiting > 0 AND FILL(tasks, 0) < 1, 1, 0)",
                using_metrics={
                    "waiting": lane.metric("ApproximateNumberOfMessagesVisible"),
                    "tasks": task_count(self._watched.bulk_lane.service, "RunningTaskCount"),
                },
                label="Waiting without a worker",
                period=MINUTE,
            ),
            periods=10,
        )
        self._alarm(
            "BulkJobHung",
            "Attempts of bulk jobs hang: see job_hung in the workers' log.",
            self._measure(Metric.JOB_HUNG, "bulk", "Sum"),
        )
        self._alarm(
            "BulkReceivesFailed",
            "Bulk workers cannot receive messages.",
            self._measure(Metric.RECEIVES_FAILED, "bulk", "Sum"),
            above=self._settings.alarms.receives_failed,
            periods=3,
        )

    def _function_alarms(self) -> None:
        watched = self._watched
        functions = {
            "SmallErrors": ("the small lane's function", watched.small_lane.function),
            "ApiFunctionErrors": ("the API's function", watched.api.function),
        }
        if (authorizer := watched.api.authorizer) is not None:
            functions["AuthorizerErrors"] = ("the authorizer", authorizer.function)
            self._alarm(
                "AuthorizerThrottles",
                "Lambda throttles the authorizer.",
                authorizer.function.metric_throttles(period=MINUTE),
            )
        for id_, (name, function) in functions.items():
            self._alarm(
                id_,
                f"Calls of {name} end with an error.",
                function.metric_errors(period=MINUTE),
                periods=3,
            )
        self._alarm(
            "RecoveryItems",
            "Recovery cannot see to some items: see recovery_item_* in its log.",
            cloudwatch.Metric(
                namespace=self._namespace,
                metric_name=Metric.RECOVERY_ITEM_FAILURES,
                statistic="Sum",
                period=MINUTE,
            ),
            periods=5,
        )

    def _table_alarms(self) -> None:
        storage = self._watched.storage
        tables = {
            "Control": (storage.control, (None, *INDEXES)),
            "Records": (storage.records, (None,)),
            "Idempotency": (storage.idempotency, (None,)),
        }
        for name, (table, parts) in tables.items():
            metrics = {
                f"{kind.lower()}{n}": _throttles(table, kind, index)
                for n, index in enumerate(parts)
                for kind in ("Read", "Write")
            }
            self._alarm(
                f"{name}Throttles",
                f"DynamoDB throttles the {name.lower()} table.",
                cloudwatch.MathExpression(
                    expression=" + ".join(f"FILL({id_}, 0)" for id_ in metrics),
                    using_metrics=metrics,
                    label="Throttled reads and writes",
                    period=MINUTE,
                ),
                periods=self._settings.alarms.throttled_minutes,
            )

    def _firewall_alarm(self, edge: Edge) -> None:
        self._alarm(
            "FirewallBlocks",
            "The web ACL refuses many requests: an attack, or a client that it misjudges.",
            cloudwatch.Metric(
                namespace="AWS/WAFV2",
                metric_name="BlockedRequests",
                dimensions_map={
                    "WebACL": edge.metric_name,
                    "Region": Stack.of(self).region,
                    "Rule": "ALL",
                },
                statistic="Sum",
                period=MINUTE,
            ),
            above=self._settings.waf.blocks_alarm,
            periods=5,
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
            alarm_name=alarm_name(self, id_),
            alarm_description=description,
            metric=metric,
            threshold=above,
            evaluation_periods=periods,
            comparison_operator=_ABOVE,
            # Idle queues and functions report nothing.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


def _throttles(table: dynamodb.ITable, kind: str, index: str | None) -> cloudwatch.Metric:
    """Of the table itself, or of an index, whose throttles DynamoDB counts apart."""
    of_index = {} if index is None else {"GlobalSecondaryIndexName": index}
    return cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name=f"{kind}ThrottleEvents",
        dimensions_map={"TableName": table.table_name, **of_index},
        statistic="Sum",
        period=MINUTE,
    )
