"""The sweeper: every minute, in bounded slices, safe to run twice at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from .acknowledge import acknowledge_payload_objects, acknowledge_serverless
from .functions import Functions
from .grants import allow_job_store, allow_payloads, allow_sending
from .lane import Lane
from .storage import Storage

TIMEOUT: Final = 55
"""Seconds: a run is over before the next one begins."""


class Recovery(Construct):
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        functions: Functions,
        storage: Storage,
        lanes: tuple[Lane, Lane],
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id_)
        self.function: Final = functions.make(
            self,
            "recovery",
            description="Sends late dispatches, runs late effects, ends jobs of dead workers",
            environment=environment,
            timeout=TIMEOUT,
            memory=512,
            reserved_concurrency=functions.settings.recovery_concurrency,
        )
        # No retries: the next minute's run does the same, and an old one is of no use.
        rule = events.Rule(
            self,
            "EveryMinute",
            schedule=events.Schedule.rate(Duration.minutes(1)),
            targets=[
                targets.LambdaFunction(
                    self.function, retry_attempts=0, max_event_age=Duration.minutes(1)
                )
            ],
        )
        self.function.configure_async_invoke(retry_attempts=0, max_event_age=Duration.minutes(1))
        again = (
            "A lost run costs a minute: the next one looks for the same things, and an alarm tells "
            "when none has run for five minutes."
        )
        acknowledge_serverless(rule, "EventBusDLQ", again)
        acknowledge_serverless(self.function, "LambdaAsyncFailureDestination", again)
        allow_job_store(self.function, storage, "due", "held")
        allow_payloads(self.function, storage.payloads, "DeleteObject")
        allow_sending(self.function, *lanes)
        acknowledge_payload_objects(self, storage.payloads)
