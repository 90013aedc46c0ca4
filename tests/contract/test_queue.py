"""One lane's queue, as far as moto and the memory agree. Nothing here waits for real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handlers.jobs.words.errors import ReceiptExpired
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message, group_of, read_pointer
from handlers.jobs.words.ports import Depth

if TYPE_CHECKING:
    from handlers.jobs.words.ports import LaneQueue


def message(job_id: str, tenant: str = "acme") -> Message:
    return Message(job_id, Lane.SMALL, group_of(tenant))


def job_ids(queue: LaneQueue, limit: int = 10) -> list[str]:
    return [read_pointer(delivery.body).job_id for delivery in queue.receive(limit, 0)]


def test_an_empty_queue_gives_nothing(queue: LaneQueue) -> None:
    assert list(queue.receive(10, 0)) == []


def test_a_message_is_delivered_with_its_story(queue: LaneQueue) -> None:
    assert queue.send([message("j1")]) == frozenset()
    (delivery,) = queue.receive(10, 0)
    assert delivery.body == message("j1").body
    assert delivery.receive_count == 1
    assert delivery.receipt
    assert delivery.message_id
    assert 0 < delivery.sent_at <= delivery.first_received_at


def test_depth_tells_waiting_from_in_flight(queue: LaneQueue) -> None:
    assert queue.depth() == Depth(0, 0)
    queue.send([message(f"j{number}") for number in range(3)])
    assert queue.depth() == Depth(3, 0)
    (delivery,) = queue.receive(1, 0)
    assert queue.depth() == Depth(2, 1)
    queue.delete(delivery.receipt)
    assert queue.depth() == Depth(2, 0)


def test_ten_messages_are_one_send_and_no_more(queue: LaneQueue) -> None:
    batch = [message(f"j{number}") for number in range(10)]
    assert queue.send(batch) == frozenset()
    assert sorted(job_ids(queue)) == sorted(f"j{number}" for number in range(10))
    assert queue.send([]) == frozenset()
    with pytest.raises(ValueError, match="11"):
        queue.send([*batch, message("j10")])


def test_receive_takes_no_more_than_asked(queue: LaneQueue) -> None:
    queue.send([message(f"j{number}") for number in range(5)])
    first, second, third = job_ids(queue, 2), job_ids(queue, 2), job_ids(queue, 2)
    assert (len(first), len(second), len(third)) == (2, 2, 1)
    assert len({*first, *second, *third}) == 5


def test_a_message_in_flight_is_hidden_until_shown(queue: LaneQueue) -> None:
    queue.send([message("j1")])
    (first,) = queue.receive(1, 0)
    assert list(queue.receive(1, 0)) == []
    queue.set_visibility(first.receipt, 0)
    (second,) = queue.receive(1, 0)
    assert second.message_id == first.message_id
    assert second.receive_count == 2
    assert second.receipt != first.receipt
    assert second.sent_at == first.sent_at
    assert second.first_received_at == first.first_received_at


def test_a_deleted_message_stays_away(queue: LaneQueue) -> None:
    queue.send([message("j1"), message("j2")])
    first, second = queue.receive(10, 0)
    queue.delete(first.receipt)
    queue.delete(first.receipt)
    queue.set_visibility(second.receipt, 0)
    assert [one.message_id for one in queue.receive(10, 0)] == [second.message_id]


def test_the_visibility_of_a_deleted_message_is_an_expired_receipt(queue: LaneQueue) -> None:
    queue.send([message("j1")])
    (delivery,) = queue.receive(1, 0)
    queue.delete(delivery.receipt)
    with pytest.raises(ReceiptExpired):
        queue.set_visibility(delivery.receipt, 30)


def test_an_unknown_receipt_is_expired_and_deleting_it_is_nothing(queue: LaneQueue) -> None:
    with pytest.raises(ReceiptExpired):
        queue.set_visibility("made-up", 30)
    queue.delete("made-up")


def test_a_message_is_hidden_for_12_hours_at_most(queue: LaneQueue) -> None:
    queue.send([message("j1")])
    (delivery,) = queue.receive(1, 0)
    queue.set_visibility(delivery.receipt, 43_100)
    for seconds in (-1, 43_201):
        with pytest.raises(ValueError, match="visibility"):
            queue.set_visibility(delivery.receipt, seconds)


@pytest.mark.parametrize(("limit", "wait"), [(0, 0), (11, 0), (1, -1), (1, 21)])
def test_a_receive_beyond_the_limits_is_a_mistake(queue: LaneQueue, limit: int, wait: int) -> None:
    with pytest.raises(ValueError, match="receive"):
        queue.receive(limit, wait)


def test_no_message_goes_without_a_group(queue: LaneQueue) -> None:
    with pytest.raises(ValueError, match="group"):
        queue.send([message("j1"), Message("j2", Lane.SMALL, "")])
    assert job_ids(queue) == []


def test_ids_travel_unharmed(queue: LaneQueue) -> None:
    ids = ["007", "7", "é", "e\u0301", "😀", 'quo"te', "back\\slash"]
    queue.send([message(job_id) for job_id in ids])
    assert sorted(job_ids(queue)) == sorted(ids)
