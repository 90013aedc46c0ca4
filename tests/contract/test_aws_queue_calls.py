"""The calls of the SQS adapter, and answers moto never gives."""

from __future__ import annotations

from typing import Any, Final

import boto3
import pytest

from handlers.aws.clients import config
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.jobs.words.errors import OutcomeUnknown, ReceiptExpired, Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message
from tests.support import aws
from tests.support.aws import stubbed

URL: Final = "https://sqs.eu-west-1.amazonaws.com/123456789012/small"
MESSAGES: Final = [Message(f"j{number}", Lane.SMALL, f"group{number}") for number in range(3)]
SUCCESS: Final = {"MessageId": "m", "MD5OfMessageBody": "x"}


def sent(accepted: list[int], failed: list[int]) -> dict[str, Any]:
    return {
        "Successful": [{"Id": str(position), **SUCCESS} for position in accepted],
        "Failed": [
            {"Id": str(position), "Code": "InternalError", "SenderFault": False}
            for position in failed
        ],
    }


def queue() -> tuple[Any, SqsLaneQueue]:
    client = boto3.client("sqs", region_name=aws.REGION, config=config(long_poll=True))
    return client, SqsLaneQueue(client, URL)


def test_a_send_carries_the_group_of_each_message() -> None:
    client, lane_queue = queue()
    entries = [
        {"Id": str(i), "MessageBody": message.body, "MessageGroupId": message.group}
        for i, message in enumerate(MESSAGES)
    ]
    with stubbed(client) as stub:
        stub.add_response(
            "send_message_batch", sent([0, 1, 2], []), {"QueueUrl": URL, "Entries": entries}
        )
        assert lane_queue.send(MESSAGES) == frozenset()


def test_a_group_travels_with_its_message() -> None:
    with aws.moto() as made:
        lane_queue = aws.lane_queue(made)
        lane_queue.send(MESSAGES[:1])
        url = made.sqs.get_queue_url(QueueName="queue")["QueueUrl"]
        (seen,) = made.sqs.receive_message(
            QueueUrl=url, MessageSystemAttributeNames=["MessageGroupId"]
        )["Messages"]
    assert seen["Attributes"]["MessageGroupId"] == MESSAGES[0].group


@pytest.mark.parametrize(("accepted", "failed"), [([0, 2], [1]), ([1], [2, 0])])
def test_what_a_send_did_not_accept_is_named(accepted: list[int], failed: list[int]) -> None:
    client, lane_queue = queue()
    with stubbed(client) as stub:
        stub.add_response("send_message_batch", sent(accepted, failed))
        assert lane_queue.send(MESSAGES) == frozenset(failed)


@pytest.mark.parametrize(
    ("accepted", "failed", "left"),
    [([0, 2], [], [1]), ([], [2], [0, 1, 2]), ([], [], [0, 1, 2]), ([1], [0], [0, 2])],
)
def test_c77_only_what_an_answer_names_as_accepted_was_sent(
    accepted: list[int], failed: list[int], left: list[int]
) -> None:
    client, lane_queue = queue()
    with stubbed(client) as stub:
        stub.add_response("send_message_batch", sent(accepted, failed))
        assert lane_queue.send(MESSAGES) == frozenset(left)


def test_a_send_that_accepts_nothing_is_transient() -> None:
    client, lane_queue = queue()
    with stubbed(client) as stub:
        stub.add_response("send_message_batch", sent([], [0, 1, 2]))
        with pytest.raises(Transient, match="InternalError"):
            lane_queue.send(MESSAGES)


def test_a_send_without_an_answer_is_unknown() -> None:
    client, lane_queue = queue()
    with stubbed(client) as stub:
        stub.add_client_error("send_message_batch", "InternalFailure", http_status_code=500)
        stub.add_client_error("send_message_batch", "RequestThrottled")
        with pytest.raises(OutcomeUnknown):
            lane_queue.send(MESSAGES)
        with pytest.raises(Transient):
            lane_queue.send(MESSAGES)


def test_a_receive_asks_for_the_story_of_each_message() -> None:
    client, lane_queue = queue()
    attributes = {
        "ApproximateReceiveCount": "3",
        "SentTimestamp": "1764400000123",
        "ApproximateFirstReceiveTimestamp": "1764400001000",
    }
    answer = {"MessageId": "m", "ReceiptHandle": "r", "Body": "b", "Attributes": attributes}
    expected = {
        "QueueUrl": URL,
        "MaxNumberOfMessages": 5,
        "WaitTimeSeconds": 20,
        "MessageSystemAttributeNames": [*sorted(attributes, reverse=True), "MessageGroupId"],
    }
    with stubbed(client) as stub:
        stub.add_response("receive_message", {"Messages": [answer]}, expected)
        (delivery,) = lane_queue.receive(5, 20)
    assert (delivery.receive_count, delivery.sent_at) == (3, 1_764_400_000_123)
    assert delivery.first_received_at == 1_764_400_001_000
    assert delivery.group == ""


@pytest.mark.parametrize(
    "code", ["MessageNotInflight", "ReceiptHandleIsInvalid", "InvalidParameterValue"]
)
def test_a_receipt_of_no_use_is_expired_and_deletes_nothing(code: str) -> None:
    client, lane_queue = queue()
    with stubbed(client) as stub:
        stub.add_client_error("change_message_visibility", code)
        stub.add_client_error("delete_message", code)
        with pytest.raises(ReceiptExpired):
            lane_queue.set_visibility("r", 30)
        lane_queue.delete("r")
