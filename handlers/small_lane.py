"""The small lane's Lambda: one job per message, one message per invocation."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)

from . import cold_start
from .bootstrap import world
from .jobs.execution.decisions import KeepMessage, apply_decision
from .jobs.execution.dwell_report import DwellReport
from .jobs.execution.stopping import Worker
from .jobs.execution.worker import on_message
from .jobs.words.errors import ReceiptExpired, Transient
from .jobs.words.job import Lane
from .jobs.words.metrics import Metric
from .jobs.words.ports import Delivery

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

SERVICE = "small_lane"


class Kept(Exception):
    """The message has to come back: reported to the event source mapping as failed."""


def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Run every message of the batch. Each has its own decision; none fails another."""

    def run(record: SQSRecord) -> None:
        _run(record, context)

    if cold_start.delayed_this_call():
        world(SERVICE).telemetry.count(Metric.COLD_START, lane=Lane.SMALL)
    # A processor of its own for each call: it collects the failures of one batch.
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(
        event=event, record_handler=run, processor=processor, context=context
    )


def _run(record: SQSRecord, context: LambdaContext) -> None:
    here = world(SERVICE)
    delivery = _delivery(record)
    worker = Worker(
        # Not the request's id alone: it is Lambda's, which may use it twice.
        name=f"{context.aws_request_id}/{here.runtime.token()}",
        deadline=here.runtime.now() + context.get_remaining_time_in_millis(),
        started=dwells().started,
    )
    try:
        decision = on_message(here, delivery, worker)
    except Exception as error:
        # Powertools reports that it failed, but does not log why.
        here.telemetry.log("message_crashed", message_id=delivery.message_id, error=error)
        raise
    if isinstance(decision, KeepMessage) or decision.receipt not in {None, delivery.receipt}:
        # The mapping deletes with the handle it received; only the worker knows a newer one.
        try:
            apply_decision(here.queues[Lane.SMALL], delivery, decision)
        except (Transient, ReceiptExpired) as error:
            here.telemetry.log("message_not_settled", message_id=record.message_id, why=str(error))
    dwells().leave()
    if isinstance(decision, KeepMessage):
        raise Kept(decision.why)


@cache
def dwells() -> DwellReport:
    return DwellReport(world(SERVICE))


def _delivery(record: SQSRecord) -> Delivery:
    attributes = record.raw_event["attributes"]
    return Delivery(
        body=record.body,
        receipt=record.receipt_handle,
        message_id=record.message_id,
        receive_count=int(attributes["ApproximateReceiveCount"]),
        sent_at=int(attributes["SentTimestamp"]),
        first_received_at=int(attributes["ApproximateFirstReceiveTimestamp"]),
        group=attributes.get("MessageGroupId", ""),
    )


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # While the function starts, not in its first job's dwell; bad settings stop it here.
    world(SERVICE)
    cold_start.done()
