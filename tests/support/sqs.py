"""Messages as Lambda's event source mapping hands them over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Delivery


def sqs_record(delivery: Delivery, **changed: object) -> dict[str, Any]:
    """One record of an event of SQS. changed: in place of what it would have."""
    return {
        "messageId": delivery.message_id,
        "receiptHandle": delivery.receipt,
        "body": delivery.body,
        "attributes": {
            "ApproximateReceiveCount": str(delivery.receive_count),
            "SentTimestamp": str(delivery.sent_at),
            "SenderId": "AROAEXAMPLE:function",
            "ApproximateFirstReceiveTimestamp": str(delivery.first_received_at),
            "MessageGroupId": delivery.group,
        },
        "messageAttributes": {},
        "md5OfBody": "00000000000000000000000000000000",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:small",
        "awsRegion": "eu-west-1",
        **changed,
    }
