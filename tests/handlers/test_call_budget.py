"""What a job costs in AWS calls. Counted are HTTP requests, whoever's client makes them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution import turns
from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.selection.id_sources import lines
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import MAX_CHUNK, PAYLOAD_BLOCK, Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR
from tests.handlers.deployment import Deployment, deployed
from tests.support.sqs import sqs_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import RecordStore

CREATE = 3
WITH_KEY = CREATE + 2
SINGLE_CHUNK = 6
FURTHER_CHUNK = 2
HEARTBEAT = 3
DWELL_SAMPLE = 1
LOOK_WHO_WAITS = 1
CHUNK = 10
RECEIVE = "SQS.ReceiveMessage"


def cost(calls: Sequence[str]) -> int:
    return sum(call != RECEIVE for call in calls)


@pytest.fixture(autouse=True)
def bulk_messages_meet_a_free_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is: a message that waited a second is asked about turns."""
    monkeypatch.setattr(turns, "AT_ONCE", HOUR)


def run_bulk(stack: Deployment) -> list[str]:
    with stack.counted() as calls:
        stack.run(Lane.BULK)
    return calls


@pytest.mark.parametrize("count", [1, 100])
def test_creating_a_small_job(stack: Deployment, count: int) -> None:
    ids = stack.fill(count)
    with stack.counted() as calls:
        stack.created(ids)
    assert 0 < cost(calls) <= CREATE, calls


def test_creating_a_small_job_with_an_idempotency_key(stack: Deployment) -> None:
    with stack.counted() as calls:
        stack.created(["a"], headers={"Idempotency-Key": "k"})
    assert CREATE < cost(calls) <= WITH_KEY, calls
    with stack.counted() as calls:
        stack.created(["a"], headers={"Idempotency-Key": "k"})
    assert cost(calls) == 1, calls


def test_a_taken_subject(stack: Deployment) -> None:
    stack.created(["a"])
    with stack.counted() as calls:
        assert stack.create(["a"]).status == 409
    assert cost(calls) <= CREATE, calls


def test_creating_with_stored_ids_costs_one_more(stack: Deployment) -> None:
    with stack.counted() as calls:
        stack.created([f"{n:040}" for n in range(1000)])
    assert calls.count("S3.PutObject") == 1
    assert cost(calls) <= CREATE + 1, calls


def test_a_single_chunk_in_the_small_lane(stack: Deployment) -> None:
    """Its message is deleted by the event source mapping: one call of somebody else."""
    id_ = stack.created(stack.fill(30))
    [delivery] = stack.receive()
    with stack.counted() as calls:
        assert stack.invoke([sqs_record(delivery)]) == []
    assert stack.job(id_).state is State.SUCCEEDED
    assert 0 < cost(calls) + 1 <= SINGLE_CHUNK, calls


def test_the_next_ones_in_the_same_process(stack: Deployment) -> None:
    """At most one call more, and that after the job's end: the sample of the lane's dwell."""
    for number in range(3):
        id_ = stack.created(stack.fill(30), subject=f"s{number}")
        [delivery] = stack.receive()
        with stack.counted() as calls:
            stack.invoke([sqs_record(delivery)])
        assert stack.job(id_).state is State.SUCCEEDED
        assert cost(calls) + 1 <= SINGLE_CHUNK + DWELL_SAMPLE, calls


def test_a_single_chunk_in_the_bulk_lane(stack: Deployment) -> None:
    """As a job of a bulk worker: with the delete, without the receive."""
    id_ = in_bulk_lane(stack, stack.fill(30))
    calls = run_bulk(stack)
    assert stack.job(id_).state is State.SUCCEEDED
    assert calls.count("SQS.DeleteMessage") == 1
    assert 0 < cost(calls) <= SINGLE_CHUNK, calls


def test_a_message_that_waited_costs_one_look_who_else_waits(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "AT_ONCE", 0)
    id_ = in_bulk_lane(stack, stack.fill(30))
    calls = run_bulk(stack)
    assert stack.job(id_).state is State.SUCCEEDED
    assert calls.count("DynamoDB.Query") == LOOK_WHO_WAITS
    assert cost(calls) <= SINGLE_CHUNK + LOOK_WHO_WAITS, calls


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_each_further_chunk(monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    with deployed(monkeypatch, limits=Limits(chunk_size=CHUNK, small_max_items=1)) as stack:
        ids = stack.fill(CHUNK * chunks)
        id_ = stack.created(ids)
        calls = run_bulk(stack)
        assert stack.job(id_).state is State.SUCCEEDED
        assert stack.prices(ids) == {11}
        assert cost(calls) <= SINGLE_CHUNK + FURTHER_CHUNK * (chunks - 1), Counter(calls)


@pytest.mark.parametrize("count", [200, 1100])
def test_stored_ids_cost_a_read_a_block_and_their_clean_up(stack: Deployment, count: int) -> None:
    """On top of the same job with inline ids: one read for each begun block of PAYLOAD_BLOCK
    bytes, one that finds the end, and two calls to delete the list and note that it is gone."""
    ids = [f"{n:0250}" for n in range(count)]
    blocks = -(-sum(map(len, lines(ids))) // PAYLOAD_BLOCK)
    assert blocks == (1 if count == 200 else 2)
    id_ = stack.created(ids)
    calls = run_bulk(stack)
    assert stack.job(id_).state is State.SUCCEEDED
    assert 0 < calls.count("S3.GetObject") <= blocks + 1
    chunks = -(-count // MAX_CHUNK)
    inline = SINGLE_CHUNK + FURTHER_CHUNK * (chunks - 1)
    assert cost(calls) <= inline + blocks + 1 + 2, Counter(calls)


def test_a_heartbeat(stack: Deployment) -> None:
    id_ = stack.created(["a"])
    [delivery] = stack.receive()
    job = stack.job(id_)
    transition = begin_attempt(stack.world, job, worker="w", receipt=delivery.receipt, expired=None)
    transaction, begun = transition.transaction, transition.after
    stack.world.store.transact(transaction.action, list(transaction.writes.values()))
    heart = Heartbeat(stack.world, begun, delivery)
    with stack.counted() as calls:
        heart._beat()
    assert not heart.lost
    assert 0 < cost(calls) <= HEARTBEAT, calls


def test_one_call_more_would_be_seen(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are tight: the same job with one read too many is over them."""
    world = stack.world
    read = type(world.records).read

    def twice(self: RecordStore, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        read(self, tenant, ids)
        return read(self, tenant, ids)

    in_bulk_lane(stack, stack.fill(2))
    assert cost(run_bulk(stack)) == SINGLE_CHUNK
    monkeypatch.setattr(type(world.records), "read", twice)
    in_bulk_lane(stack, stack.fill(2))
    assert cost(run_bulk(stack)) == SINGLE_CHUNK + 1


def in_bulk_lane(stack: Deployment, ids: Sequence[str]) -> str:
    """A job small enough for the small lane, promoted to the bulk lane."""
    id_ = stack.created(ids)
    [delivery] = stack.receive()
    # No time is left: the job goes on in the bulk lane without having begun a chunk.
    assert stack.invoke([sqs_record(delivery)], remaining=0) == []
    assert stack.job(id_).lane is Lane.BULK
    stack.world.queues[Lane.SMALL].delete(delivery.receipt)
    return id_
