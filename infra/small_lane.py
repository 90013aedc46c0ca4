"""The small lane's workers: one Lambda, one job per invocation, concurrency of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct

from .acknowledge import acknowledge_payload_objects
from .functions import Functions
from .grants import allow_work
from .lane import Lane
from .storage import Storage


class SmallLane(Construct):
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        functions: Functions,
        storage: Storage,
        small: Lane,
        bulk: Lane,
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id_)
        settings = functions.settings
        lane = settings.small_lane
        self.function: Final = functions.make(
            self,
            "small_lane",
            description="Runs small jobs",
            environment=environment,
            timeout=settings.timing.function_timeout,
            memory=lane.memory,
            reserved_concurrency=lane.reserved_concurrency,
        )
        # Grants receiving, deleting and changing visibility.
        self.function.add_event_source(
            sources.SqsEventSource(
                small.queue,
                batch_size=lane.batch_size,
                max_concurrency=lane.maximum_concurrency,
                report_batch_item_failures=True,
            )
        )
        allow_work(self.function, storage, [small, bulk])
        acknowledge_payload_objects(self, storage.payloads)
