"""A lane: a queue, its dead letters and their alarms. What serves it lives beside it."""

from __future__ import annotations

from typing import Final, TypedDict

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from handlers.jobs.words.timing import LaneTiming

from .acknowledge import acknowledge_serverless
from .parts import AlarmSettings

MINUTE: Final = Duration.minutes(1)
"""CloudWatch's finest period for AWS metrics; CDK's default is five."""


def alarm_name(scope: Construct, page: str) -> str:
    """page: the heading in docs/runbook.md. Alarms of two deployments stay apart."""
    return f"{Stack.of(scope).stack_name}-{page}"


class _Encryption(TypedDict, total=False):
    encryption: sqs.QueueEncryption
    encryption_master_key: kms.IKey
    data_key_reuse: Duration


class Lane(Construct):
    """Every duration and count comes out of the lane's timing, whose relations are checked."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        timing: LaneTiming,
        alarms: AlarmSettings,
        key: kms.IKey | None = None,
    ) -> None:
        super().__init__(scope, id_)
        stack = Stack.of(self)
        # A name of our own, because each of the two queues names the other.
        name = f"{stack.stack_name}-{id_.lower()}"
        source = sqs.Queue.from_queue_arn(
            self, "Source", stack.format_arn(service="sqs", resource=name)
        )
        encryption = _encryption(key)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            retention_period=Duration.seconds(timing.dlq_retention),
            enforce_ssl=True,
            **encryption,
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE, source_queues=[source]
            ),
        )
        acknowledge_serverless(
            self.dead_letters,
            "SQSRedrivePolicy",
            "These are the dead letters: an alarm tells of the first one, and operators list and "
            "redrive them.",
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=name,
            visibility_timeout=Duration.seconds(timing.visibility),
            retention_period=Duration.seconds(timing.queue_retention),
            enforce_ssl=True,
            **encryption,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=timing.max_receive_count
            ),
        )
        self._alarms(alarms)

    def metric(self, name: str, statistic: str = "Maximum") -> cloudwatch.Metric:
        return self.queue.metric(name, statistic=statistic, period=MINUTE)

    def dead_letter_metric(self) -> cloudwatch.Metric:
        # The count of messages sent does not include those SQS moved by itself.
        return self.dead_letters.metric(
            "ApproximateNumberOfMessagesVisible", statistic="Maximum", period=MINUTE
        )

    def _alarms(self, alarms: AlarmSettings) -> None:
        cloudwatch.Alarm(
            self,
            "DeadLettersAlarm",
            alarm_name=alarm_name(self, f"{self.node.id}DeadLetters"),
            alarm_description="The queue gave up on a message: see fairlane dlq list.",
            metric=self.dead_letter_metric(),
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        cloudwatch.Alarm(
            self,
            "InFlightAlarm",
            alarm_name=alarm_name(self, f"{self.node.id}InFlight"),
            alarm_description="SQS allows hardly more messages in flight: workers may be stuck.",
            metric=self.metric("ApproximateNumberOfMessagesNotVisible"),
            threshold=alarms.in_flight,
            evaluation_periods=3,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


def _encryption(key: kms.IKey | None) -> _Encryption:
    """SQS encrypts by itself. With a customer key each call to KMS is paid, so one data key serves
    for an hour."""
    if key is None:
        return {}
    return {
        "encryption": sqs.QueueEncryption.KMS,
        "encryption_master_key": key,
        "data_key_reuse": Duration.hours(1),
    }
