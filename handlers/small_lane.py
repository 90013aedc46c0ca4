"""The small lane's Lambda: one job per message, one message per invocation."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from .jobs.execution.decisions import Decision

SERVICE = "small_lane"


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Run every message of the batch. Each has its own decision; none fails another.

    Returns the messages that have to come back, as the event source mapping takes them
    (``ReportBatchItemFailures``).
    """
    if cold_start.delayed_this_call():
        world(SERVICE).telemetry.count(Metric.COLD_START, lane=Lane.SMALL)
    kept = [each["messageId"] for each in event["Records"] if _kept(each, context)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in kept]}


def _kept(record: Mapping[str, Any], context: LambdaContext) -> bool:
    """Runs one message. Whether it has to come back, also because its run crashed."""
    telemetry = world(SERVICE).telemetry
    try:
        delivery = _delivery(record)
        decision = _decision(delivery, context)
        _apply(decision, delivery)
        dwells().leave()
    except Exception as error:  # noqa: BLE001  one message fails no other
        telemetry.log("message_crashed", message_id=record.get("messageId"), error=error)
        return True
    return isinstance(decision, KeepMessage)


def _decision(delivery: Delivery, context: LambdaContext) -> Decision:
    here = world(SERVICE)
    worker = Worker(
        # Not the request's id alone: it is Lambda's, which may use it twice.
        name=f"{context.aws_request_id}/{here.runtime.token()}",
        deadline=here.runtime.now() + context.get_remaining_time_in_millis(),
        started=dwells().started,
    )
    return on_message(here, delivery, worker)


def _apply(decision: Decision, delivery: Delivery) -> None:
    """The mapping deletes with the handle it received; only the worker knows a newer one."""
    if not isinstance(decision, KeepMessage) and decision.receipt in {None, delivery.receipt}:
        return
    here = world(SERVICE)
    try:
        apply_decision(here.queues[Lane.SMALL], delivery, decision)
    except (Transient, ReceiptExpired) as error:
        here.telemetry.log("message_not_settled", message_id=delivery.message_id, why=str(error))


@cache
def dwells() -> DwellReport:
    return DwellReport(world(SERVICE))


def _delivery(record: Mapping[str, Any]) -> Delivery:
    """record: one of an SQS event."""
    attributes = record["attributes"]
    return Delivery(
        body=record["body"],
        receipt=record["receiptHandle"],
        message_id=record["messageId"],
        receive_count=int(attributes["ApproximateReceiveCount"]),
        sent_at=int(attributes["SentTimestamp"]),
        first_received_at=int(attributes["ApproximateFirstReceiveTimestamp"]),
        group=attributes.get("MessageGroupId", ""),
    )


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # While the function starts, not in its first job's dwell; bad settings stop it here.
    world(SERVICE)
    cold_start.done()
