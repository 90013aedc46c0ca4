"""One lane's queue in SQS."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..jobs.words.errors import ReceiptExpired, Transient
from ..jobs.words.ports import Delivery, Depth
from ..jobs.words.timing import SECOND, VISIBILITY_CAP
from .clients import LONGEST_POLL
from .errors import reading, sending, using_receipt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchRequestEntryTypeDef

    from ..jobs.words.messages import Message

MAX_BATCH: Final = 10
WAITING: Final = "ApproximateNumberOfMessages"
IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"


class SqsLaneQueue:
    """``LaneQueue`` on a standard SQS queue. The client's read time-out has to be longer than the
    longest wait (``clients.config(long_poll=True)``)."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        if len(messages) > MAX_BATCH:
            raise ValueError(f"{len(messages)} messages in one send, not at most {MAX_BATCH}")
        if not messages:
            return frozenset()
        entries = [_entry(position, message) for position, message in enumerate(messages)]
        with sending():
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        failed = answer.get("Failed", [])
        if len(failed) == len(messages):
            raise Transient("; ".join(sorted({entry["Code"] for entry in failed})))
        # A message that the answer does not name may not have been taken.
        accepted = {int(entry["Id"]) for entry in answer.get("Successful", [])}
        return frozenset(range(len(messages))) - accepted

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        if not 1 <= limit <= MAX_BATCH or not 0 <= wait_seconds <= LONGEST_POLL:
            raise ValueError(f"receive of {limit} messages waiting {wait_seconds} s")
        with reading():
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=wait_seconds,
                MessageSystemAttributeNames=[
                    "SentTimestamp",
                    "ApproximateReceiveCount",
                    "ApproximateFirstReceiveTimestamp",
                    "MessageGroupId",
                ],
            )
        return [_delivery(message) for message in answer.get("Messages", [])]

    def set_visibility(self, receipt: str, seconds: int) -> None:
        if not 0 <= seconds * SECOND <= VISIBILITY_CAP:
            raise ValueError(f"a visibility of {seconds} s")
        with using_receipt():
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )

    def delete(self, receipt: str) -> None:
        # An invalid handle proves as little as a success with an old one.
        with suppress(ReceiptExpired), using_receipt():
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)

    def depth(self) -> Depth:
        with reading():
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=[WAITING, IN_FLIGHT]
            )
        counts = answer["Attributes"]
        return Depth(int(counts[WAITING]), int(counts[IN_FLIGHT]))


def _entry(position: int, message: Message) -> SendMessageBatchRequestEntryTypeDef:
    if not message.group:
        raise ValueError("a message without a group is served before everyone else's")
    return {
        "Id": str(position),
        "MessageBody": message.body,
        "MessageGroupId": message.group,
    }


def _delivery(message: MessageTypeDef) -> Delivery:
    attributes = message["Attributes"]
    return Delivery(
        body=message["Body"],
        receipt=message["ReceiptHandle"],
        message_id=message["MessageId"],
        receive_count=int(attributes["ApproximateReceiveCount"]),
        sent_at=int(attributes["SentTimestamp"]),
        first_received_at=int(attributes["ApproximateFirstReceiveTimestamp"]),
        group=attributes.get("MessageGroupId", ""),
    )
