"""How many bulk workers: as many as the messages need, waiting or in flight, with the slots of one.

Not by CPU, which says nothing of waiting jobs. Both directions compare the tasks that are needed
with those that are wanted already (ECS reports that number with Container Insights), so one message
a minute never adds up, and a message in flight keeps the worker that holds it.

From no task at all, SQS's metrics are no help: those of a queue that slept for six hours can be a
quarter of an hour late. There the sender of a job starts the first worker (``handlers.aws.wake``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from .lane import MINUTE, Lane
from .parts import BulkLaneSettings

STEPS: Final = (1, 2, 4, 8, 16, 32)
"""Tasks too few or too many, and how many are started or ended at once. The next minutes see to the
rest."""
COOLDOWN: Final = Duration.minutes(3)
"""Until ECS's own count shows what was started."""


def scale(service: ecs.FargateService, lane: Lane, settings: BulkLaneSettings) -> None:
    scope = Construct(service, "Scaling")
    # The plain resource: AWS scales ECS with its service-linked role, CDK would make another one.
    target = autoscaling.CfnScalableTarget(
        scope,
        "Target",
        service_namespace="ecs",
        resource_id=f"service/{service.cluster.cluster_name}/{service.service_name}",
        scalable_dimension="ecs:service:DesiredCount",
        min_capacity=settings.min_tasks,
        max_capacity=settings.max_tasks,
    )
    needed = f"CEIL((waiting + in_flight) / {settings.slots})"
    least, most = settings.min_tasks, settings.max_tasks
    # A minute that ECS has not reported yet is as the last one; what SQS does not report may be
    # anything, and changes nothing.
    wanted = "FILL(desired, REPEAT)"
    metrics = {
        "waiting": lane.metric("ApproximateNumberOfMessagesVisible"),
        "in_flight": lane.metric("ApproximateNumberOfMessagesNotVisible"),
        "desired": task_count(service, "DesiredTaskCount"),
    }
    _policy(
        scope,
        "Grow",
        target,
        steps=STEPS,
        minutes=1,
        metric=cloudwatch.MathExpression(
            expression=f"IF({needed} > {most}, {most}, {needed}) - {wanted}",
            using_metrics=metrics,
            label="Bulk tasks too few",
            period=MINUTE,
        ),
    )
    _policy(
        scope,
        "Shrink",
        target,
        steps=[-step for step in STEPS],
        minutes=settings.idle_minutes,
        metric=cloudwatch.MathExpression(
            expression=f"{wanted} - IF({needed} < {least}, {least}, {needed})",
            using_metrics=metrics,
            label="Bulk tasks too many",
            period=MINUTE,
        ),
    )


def task_count(service: ecs.FargateService, name: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="ECS/ContainerInsights",
        metric_name=name,
        dimensions_map={
            "ClusterName": service.cluster.cluster_name,
            "ServiceName": service.service_name,
        },
        statistic="Maximum",
        period=MINUTE,
    )


def _policy(
    scope: Construct,
    id_: str,
    target: autoscaling.CfnScalableTarget,
    *,
    steps: Sequence[int],
    minutes: int,
    metric: cloudwatch.MathExpression,
) -> None:
    """minutes: for how long the metric has to be at least one."""
    policy = autoscaling.StepScalingAction(
        scope,
        id_,
        scaling_target=target,
        adjustment_type=autoscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        cooldown=COOLDOWN,
        metric_aggregation_type=autoscaling.MetricAggregationType.MAXIMUM,
    )
    # Bounds count from the alarm's threshold, which is one task.
    for step, following in pairwise([*steps, None]):
        assert step is not None
        policy.add_adjustment(
            adjustment=step,
            lower_bound=abs(step) - 1,
            upper_bound=None if following is None else abs(following) - 1,
        )
    cloudwatch.Alarm(
        scope,
        f"{id_}Alarm",
        alarm_description=f"Scaling, business as usual: {metric.label}.",
        metric=metric,
        threshold=1,
        evaluation_periods=minutes,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    ).add_alarm_action(actions.ApplicationScalingAction(policy))
