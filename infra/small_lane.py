"""The small lane's workers: one Lambda, one job per invocation, concurrency of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Names
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .acknowledge import acknowledge_payload_objects, acknowledge_serverless
from .functions import Functions
from .grants import allow_polling, allow_sending, allow_work
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
        self._warm = lane.provisioned_concurrency
        self.function: Final = functions.make(
            self,
            "small_lane",
            description="Runs small jobs",
            environment=environment,
            timeout=settings.timing.function_timeout,
            memory=lane.memory,
            reserved_concurrency=lane.reserved_concurrency,
        )
        # Not CDK's event source: that one grants what neither the poller nor the code asks for.
        self._served().add_event_source_mapping(
            f"SqsEventSource:{Names.node_unique_id(small.queue.node)}",
            event_source_arn=small.queue.queue_arn,
            batch_size=lane.batch_size,
            max_concurrency=lane.maximum_concurrency,
            report_batch_item_failures=True,
        )
        allow_polling(self.function, small)
        # The mapping is somewhere below, under the function or its alias.
        acknowledge_serverless(
            self,
            "LambdaEventSourceMappingDestination",
            "A mapping of a queue has no destination: the queue itself moves a message to its dead "
            "letters, after as many receives as its redrive policy says.",
        )
        allow_work(self.function, storage)
        # A job that lacks time is handed to the bulk lane; the end of one lets the next one in.
        allow_sending(self.function, small, bulk)
        acknowledge_payload_objects(self, storage.payloads)

    def _served(self) -> lambda_.IFunction:
        """What takes the messages: the function, or its newest version with some of it warm.

        AWS keeps only a published version warm. A deployment publishes one, warms it, and then
        turns the alias to it.
        """
        if not self._warm:
            return self.function
        return lambda_.Alias(
            self,
            "Live",
            alias_name="live",
            version=self.function.current_version,
            provisioned_concurrent_executions=self._warm,
        )
