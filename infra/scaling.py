"""How many bulk workers. Not by CPU, which says nothing of waiting jobs, and not down to fewer
while a message is in flight, which would end the worker that holds it."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from .lane import MINUTE, Lane
from .parts import BulkLaneSettings

GROWTH: Final = ((1, 1), (10, 2), (50, 4))
"""(messages waiting, tasks added). One waiting message is enough, also with no task at all."""


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
    _grow(scope, target, lane)
    _shrink(scope, target, lane, settings)


def _grow(scope: Construct, target: autoscaling.CfnScalableTarget, lane: Lane) -> None:
    policy = autoscaling.StepScalingAction(
        scope,
        "Grow",
        scaling_target=target,
        adjustment_type=autoscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        # A task needs about that long to take its first message.
        cooldown=Duration.minutes(2),
        metric_aggregation_type=autoscaling.MetricAggregationType.MAXIMUM,
    )
    threshold = GROWTH[0][0]
    ends = [start for start, _ in GROWTH[1:]]
    for (start, added), end in zip(GROWTH, [*ends, None], strict=True):
        # Bounds count from the alarm's threshold.
        policy.add_adjustment(
            adjustment=added,
            lower_bound=start - threshold,
            upper_bound=None if end is None else end - threshold,
        )
    cloudwatch.Alarm(
        scope,
        "Waiting",
        alarm_description="Scaling: bulk messages wait.",
        metric=lane.metric("ApproximateNumberOfMessagesVisible"),
        threshold=threshold,
        evaluation_periods=1,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    ).add_alarm_action(actions.ApplicationScalingAction(policy))


def _shrink(
    scope: Construct,
    target: autoscaling.CfnScalableTarget,
    lane: Lane,
    settings: BulkLaneSettings,
) -> None:
    policy = autoscaling.StepScalingAction(
        scope,
        "Shrink",
        scaling_target=target,
        adjustment_type=autoscaling.AdjustmentType.EXACT_CAPACITY,
        metric_aggregation_type=autoscaling.MetricAggregationType.MAXIMUM,
    )
    policy.add_adjustment(adjustment=settings.min_tasks, upper_bound=0)
    cloudwatch.Alarm(
        scope,
        "Idle",
        alarm_description="Scaling: no bulk message waits and none is in flight.",
        metric=cloudwatch.MathExpression(
            expression="waiting + in_flight",
            using_metrics={
                "waiting": lane.metric("ApproximateNumberOfMessagesVisible"),
                "in_flight": lane.metric("ApproximateNumberOfMessagesNotVisible"),
            },
            label="Messages waiting or in flight",
            period=MINUTE,
        ),
        threshold=0,
        evaluation_periods=settings.idle_minutes,
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_OR_EQUAL_TO_THRESHOLD,
        # A queue that reports nothing may hold anything.
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    ).add_alarm_action(actions.ApplicationScalingAction(policy))
