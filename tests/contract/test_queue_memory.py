"""What SQS does and moto does not show: only the queue in memory, on virtual time.

moto lets an old receipt delete and extend, accepts a receipt of a message that is visible again,
and needs real time to pass. The facts are from the API reference of SQS (DeleteMessage,
ChangeMessageVisibility) and its pages on visibility and dead-letter queues.
"""

from __future__ import annotations

from typing import Final

import pytest

from handlers.jobs.words.errors import ReceiptExpired
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message, group_of
from handlers.jobs.words.timing import DAY, HOUR, SECOND
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.runtime import ManualRuntime

MESSAGE: Final = Message("j1", Lane.BULK, group_of("acme"))
VISIBILITY: Final = 30


@pytest.fixture
def runtime() -> ManualRuntime:
    return ManualRuntime()


@pytest.fixture
def dead_letters(runtime: ManualRuntime) -> MemoryLaneQueue:
    return MemoryLaneQueue(runtime, name="dlq", retention=14 * 86_400)


@pytest.fixture
def queue(runtime: ManualRuntime, dead_letters: MemoryLaneQueue) -> MemoryLaneQueue:
    return MemoryLaneQueue(
        runtime, visibility=VISIBILITY, max_receive_count=3, dead_letters=dead_letters
    )


def test_a_message_comes_back_when_its_visibility_ends(
    runtime: ManualRuntime, queue: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    runtime.sleep(VISIBILITY * SECOND - 1)
    assert not queue.receive(1, 0)
    runtime.sleep(1)
    (second,) = queue.receive(1, 0)
    assert (first.receive_count, second.receive_count) == (1, 2)


def test_visibility_counts_from_the_call(runtime: ManualRuntime, queue: MemoryLaneQueue) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    runtime.sleep(20 * SECOND)
    queue.set_visibility(first.receipt, 15)
    runtime.sleep(15 * SECOND - 1)
    assert not queue.receive(1, 0)
    runtime.sleep(1)
    assert queue.receive(1, 0)


def test_a_set_visibility_is_not_remembered(runtime: ManualRuntime, queue: MemoryLaneQueue) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    queue.set_visibility(first.receipt, 1000)
    runtime.sleep(1000 * SECOND)
    assert queue.receive(1, 0)
    runtime.sleep(VISIBILITY * SECOND)
    assert queue.receive(1, 0)


def test_an_old_receipt_deletes_nothing_and_says_nothing(
    runtime: ManualRuntime, queue: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    runtime.sleep(VISIBILITY * SECOND)
    (second,) = queue.receive(1, 0)
    queue.delete(first.receipt)
    assert len(queue.snapshot()) == 1
    queue.delete(second.receipt)
    assert not queue.snapshot()


def test_a_receipt_deletes_until_the_message_is_received_again(
    runtime: ManualRuntime, queue: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    runtime.sleep(VISIBILITY * SECOND)
    queue.delete(first.receipt)
    assert not queue.snapshot()


def test_an_old_receipt_extends_nothing(runtime: ManualRuntime, queue: MemoryLaneQueue) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    runtime.sleep(VISIBILITY * SECOND)
    queue.receive(1, 0)
    queue.set_visibility(first.receipt, 1000)
    runtime.sleep(VISIBILITY * SECOND)
    assert queue.receive(1, 0)


def test_a_message_that_is_visible_again_is_not_in_flight(
    runtime: ManualRuntime, queue: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    runtime.sleep(VISIBILITY * SECOND)
    with pytest.raises(ReceiptExpired):
        queue.set_visibility(first.receipt, 1000)


def test_extending_ends_12_hours_after_the_first_receive(
    runtime: ManualRuntime, queue: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    (first,) = queue.receive(1, 0)
    queue.set_visibility(first.receipt, 11 * 3600)
    runtime.sleep(10 * HOUR)
    queue.set_visibility(first.receipt, 2 * 3600)
    with pytest.raises(ReceiptExpired, match="12 hours"):
        queue.set_visibility(first.receipt, 2 * 3600 + 1)


def test_a_message_received_too_often_becomes_a_dead_letter(
    runtime: ManualRuntime, queue: MemoryLaneQueue, dead_letters: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    sent = runtime.now()
    for count in (1, 2, 3):
        (delivery,) = queue.receive(1, 0)
        assert delivery.receive_count == count
        assert not dead_letters.snapshot()
        runtime.sleep(VISIBILITY * SECOND)
    assert not queue.receive(1, 0)
    assert not queue.snapshot()
    (letter,) = dead_letters.snapshot()
    assert (letter.body, letter.group, letter.sent_at) == (MESSAGE.body, MESSAGE.group, sent)
    assert dead_letters.receive(1, 0)


def test_a_dead_letters_age_counts_from_its_first_send(
    runtime: ManualRuntime, queue: MemoryLaneQueue, dead_letters: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    runtime.sleep(3 * DAY)
    for _ in range(4):
        queue.receive(1, 0)
        runtime.sleep(VISIBILITY * SECOND)
    assert dead_letters.snapshot()
    runtime.sleep(11 * DAY)
    assert not dead_letters.snapshot()


def test_a_message_is_dropped_when_its_retention_ends(
    runtime: ManualRuntime, queue: MemoryLaneQueue
) -> None:
    queue.send([MESSAGE])
    runtime.sleep(4 * DAY - 1)
    assert queue.snapshot()
    runtime.sleep(1)
    assert not queue.receive(1, 0)


def test_a_long_poll_waits_for_what_comes(runtime: ManualRuntime, queue: MemoryLaneQueue) -> None:
    began = runtime.now()

    def send_later() -> None:
        runtime.sleep(7 * SECOND)
        queue.send([MESSAGE])

    task = runtime.spawn("sender", send_later)
    (delivery,) = queue.receive(10, 20)
    task.join()
    assert delivery.sent_at == began + 7 * SECOND
    assert runtime.now() <= began + 8 * SECOND


def test_a_long_poll_ends(runtime: ManualRuntime, queue: MemoryLaneQueue) -> None:
    began = runtime.now()
    assert not queue.receive(10, 20)
    assert runtime.now() == began + 20 * SECOND
