"""The small lane's function: each message of a batch decides for itself, and none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from handlers import bootstrap, small_lane
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from tests.support.sqs import sqs_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import Delivery, RecordStore, Store
    from handlers.jobs.words.writes import Item, Key
    from tests.handlers.deployment import Deployment


def three(stack: Deployment) -> tuple[list[str], Sequence[Delivery]]:
    """The ids of three jobs and their deliveries, in the same order."""
    ids = stack.fill(1)
    jobs = [stack.created(ids, f"s{n}") for n in range(3)]
    found = {d.body: d for d in stack.receive(limit=10)}
    return jobs, [next(d for body, d in found.items() if job in body) for job in jobs]


def settle_like_the_mapping(
    stack: Deployment, given: Sequence[Delivery], failed: list[str]
) -> None:
    """The event source mapping deletes what is not reported."""
    for delivery in given:
        if delivery.message_id not in failed:
            stack.world.queues[Lane.SMALL].delete(delivery.receipt)


def decide(monkeypatch: pytest.MonkeyPatch, decisions: dict[str, Decision | Exception]) -> None:
    """Let each message, by id, be decided like this."""

    def decided(world: object, delivery: Delivery, worker: object) -> Decision:
        decision = decisions[delivery.message_id]
        if isinstance(decision, Exception):
            raise decision
        return decision

    monkeypatch.setattr(small_lane, "on_message", decided)


def test_three_good_ones_and_nothing_comes_back(stack: Deployment) -> None:
    jobs, given = three(stack)
    failed = stack.invoke([sqs_record(d) for d in given])
    assert failed == []
    settle_like_the_mapping(stack, given, failed)
    assert {stack.job(job).state for job in jobs} == {State.SUCCEEDED}
    assert stack.prices(["r00000"]) == {13}
    assert stack.messages(Lane.SMALL) == (0, 0)


def test_c27_only_the_one_that_failed_comes_back(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dependency of the second job's is down; its neighbours end as if nothing were."""
    jobs, given = three(stack)
    get = type(stack.world.store).get

    def down_for_one(self: Store, key: Key) -> Item | None:
        if key == control_table.job_key(jobs[1]):
            raise Transient("down")
        return get(self, key)

    with monkeypatch.context() as broken:
        broken.setattr(type(stack.world.store), "get", down_for_one)
        broken.setattr(type(stack.world.runtime), "sleep", lambda *_: None)
        failed = stack.invoke([sqs_record(d) for d in given])
    assert failed == [given[1].message_id]
    settle_like_the_mapping(stack, given, failed)
    assert [stack.job(j).state for j in jobs] == ["SUCCEEDED", "QUEUED", "SUCCEEDED"]
    assert sum(stack.messages(Lane.SMALL)) == 1


def test_c27_an_unexpected_exception_brings_its_message_back_and_is_logged(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, given = three(stack)
    crash = RuntimeError("a bug")
    ids = [d.message_id for d in given]
    decide(monkeypatch, dict.fromkeys(ids, crash))
    failed = stack.invoke([sqs_record(d) for d in given])
    assert failed == ids
    settle_like_the_mapping(stack, given, failed)
    assert sum(stack.messages(Lane.SMALL)) == 3
    assert capsys.readouterr().out.count('"action":"message_crashed"') == 3
    assert {stack.job(j).state for j in jobs} == {State.QUEUED}


def test_c27_a_record_that_is_no_sqs_record_loses_no_neighbour(stack: Deployment) -> None:
    jobs, given = three(stack)
    records = [sqs_record(d) for d in given]
    del records[1]["attributes"]["SentTimestamp"]
    failed = stack.invoke(records)
    assert failed == [given[1].message_id]
    assert [stack.job(j).state for j in jobs] == ["SUCCEEDED", "QUEUED", "SUCCEEDED"]


def test_a_crash_of_the_whole_function_reports_nothing_as_done(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception out of the function brings the whole batch back."""
    _, given = three(stack)

    def unready(*_: object) -> None:
        raise SystemExit(1)

    monkeypatch.setattr(small_lane, "on_message", unready)
    with pytest.raises(SystemExit):
        stack.invoke([sqs_record(d) for d in given])


@pytest.mark.parametrize(
    "body", ["", "{", "null", "[]", '{"version": 2}', '{"version": 1}', "\x00", "{" * 5000]
)
def test_c12_an_unreadable_body_is_deleted_counted_and_logged(
    stack: Deployment, capsys: pytest.CaptureFixture[str], body: str
) -> None:
    """It can never become readable; kept, it would only go round until the dead letters."""
    stack.made.sqs.send_message(QueueUrl=stack.urls[Lane.SMALL], MessageBody="x")
    [delivery] = stack.receive()
    assert stack.invoke([sqs_record(delivery, body=body)]) == []
    said = capsys.readouterr().out
    assert '"action":"message_unreadable"' in said
    assert '"UnreadableMessages":[1.0]' in said


@pytest.mark.parametrize("seconds", [0, 7, 300])
def test_a_kept_message_comes_back_when_it_was_told_to(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    stack.created(["a"])
    [delivery] = stack.receive()
    decide(monkeypatch, {delivery.message_id: KeepMessage("test", seconds)})
    hidden = spied(stack, monkeypatch, "change_message_visibility")
    assert stack.invoke([sqs_record(delivery)]) == [delivery.message_id]
    assert [call["VisibilityTimeout"] for call in hidden] == [seconds]
    assert [call["ReceiptHandle"] for call in hidden] == [delivery.receipt]
    if seconds == 0:
        assert len(stack.receive()) == 1


def test_a_message_that_may_be_somebody_elses_is_left_as_it_is(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.created(["a"])
    [delivery] = stack.receive()
    decide(monkeypatch, {delivery.message_id: KeepMessage("ownership lost", None)})
    hidden = spied(stack, monkeypatch, "change_message_visibility")
    assert stack.invoke([sqs_record(delivery)]) == [delivery.message_id]
    assert hidden == []


def test_a_kept_message_whose_visibility_cannot_be_set_still_comes_back(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.created(["a"])
    [delivery] = stack.receive()
    decide(monkeypatch, {delivery.message_id: KeepMessage("test", 7)})

    def down(*_: object) -> None:
        raise Transient("down")

    monkeypatch.setattr(type(stack.world.queues[Lane.SMALL]), "set_visibility", down)
    assert stack.invoke([sqs_record(delivery)]) == [delivery.message_id]
    assert "message_not_settled" in capsys.readouterr().out


def test_the_newest_receipt_deletes(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mapping deletes with the handle it got, which is stale after a redelivery."""
    stack.created(["a"])
    [old] = stack.receive()
    stack.world.queues[Lane.SMALL].set_visibility(old.receipt, 0)
    [new] = stack.receive()
    assert new.receipt != old.receipt
    decide(monkeypatch, {old.message_id: DeleteMessage("succeeded", new.receipt)})
    deleted = spied(stack, monkeypatch, "delete_message")
    assert stack.invoke([sqs_record(old)]) == []
    assert [call["ReceiptHandle"] for call in deleted] == [new.receipt]
    assert stack.messages(Lane.SMALL) == (0, 0)


def test_the_mappings_own_handle_is_left_to_the_mapping(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.created(["a"])
    [delivery] = stack.receive()
    decide(monkeypatch, {delivery.message_id: DeleteMessage("succeeded", delivery.receipt)})
    deleted = spied(stack, monkeypatch, "delete_message")
    assert stack.invoke([sqs_record(delivery)]) == []
    assert deleted == []


def test_a_redelivery_of_a_running_job_is_kept_and_hands_its_receipt_over(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first invocation works, a second one gets the same message."""
    ids = stack.fill(1)
    job = stack.created(ids)
    [first] = stack.receive()
    read = type(stack.world.records).read
    second: list[str] = []

    def meanwhile(self: RecordStore, tenant: str, wanted: Sequence[str]) -> Mapping[str, Record]:
        if not second:
            stack.world.queues[Lane.SMALL].set_visibility(first.receipt, 0)
            [again] = stack.receive()
            second.append(again.receipt)
            assert stack.invoke([sqs_record(again)]) == [again.message_id]
        return read(self, tenant, wanted)

    monkeypatch.setattr(type(stack.world.records), "read", meanwhile)
    assert stack.invoke([sqs_record(first)]) == []
    assert stack.job(job).state is State.SUCCEEDED
    assert stack.prices(ids) == {11}
    # It comes back once at most, finds a finished job, and goes.
    assert stack.invoke([sqs_record(first, receiptHandle=second[0])]) == []
    assert stack.prices(ids) == {11}


def test_a_small_job_short_of_time_goes_on_in_the_bulk_lane(stack: Deployment) -> None:
    ids = stack.fill(2)
    job = stack.created(ids)
    [delivery] = stack.receive()
    reserve = int(stack.world.timing.small_reserve * 1000)
    assert stack.invoke([sqs_record(delivery)], remaining=reserve) == []
    assert (stack.job(job).lane, stack.job(job).attempt) == (Lane.BULK, 0)
    stack.run(Lane.BULK)
    assert stack.job(job).state is State.SUCCEEDED


def spied(stack: Deployment, monkeypatch: pytest.MonkeyPatch, operation: str) -> list[Any]:
    """The arguments of every call of one operation of the function's SQS client from now on."""
    calls: list[Any] = []
    queue = bootstrap.world(small_lane.SERVICE).queues[Lane.SMALL]
    assert isinstance(queue, SqsLaneQueue)
    real = getattr(queue._client, operation)

    def call(**arguments: object) -> object:
        calls.append(arguments)
        return real(**arguments)

    monkeypatch.setattr(queue._client, operation, call)
    return calls
