"""``Idempotency-Key``: one job per key and request, whatever crashes in between."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer

from handlers import bootstrap
from handlers.aws.job_store import DynamoStore
from handlers.jobs.words.errors import OutcomeUnknown, Transient
from handlers.jobs.words.job import Lane
from tests.handlers.deployment import IDEMPOTENCY, job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handlers.jobs.words.writes import Write
    from tests.handlers.deployment import Answer, Deployment

KEY = {"Idempotency-Key": "one"}
PATIENCE: Final = 900
"""Seconds no request takes, unless a test fails."""


class Killed(BaseException):
    """The function's process ends here; nothing of ours can catch it."""


def ask(stack: Deployment, ids: Sequence[str] = ("r00000",), **more: Any) -> Answer:
    return stack.create(list(ids), headers=KEY, **more)


def ask_patiently(stack: Deployment) -> Answer:
    """With so much time left that what another thread began is not taken for dead."""
    return ask(stack, remaining=PATIENCE * 1000)


def jobs(stack: Deployment) -> int:
    return len(stack.kept("JOB"))


def age_progress(stack: Deployment) -> None:
    """Let the time pass that an unfinished request may take."""
    [item] = stack.made.dynamodb.scan(TableName=IDEMPOTENCY)["Items"]
    assert int(item["in_progress_expiration"]["N"]) > 0
    stack.made.dynamodb.update_item(
        TableName=IDEMPOTENCY,
        Key={"id": item["id"]},
        UpdateExpression="SET in_progress_expiration = :past",
        ExpressionAttributeValues={":past": {"N": "1"}},
    )


def killed_after(
    monkeypatch: pytest.MonkeyPatch, action: str, *, applied: bool
) -> Callable[[], None]:
    """The process dies at a transaction; returns what brings it back to life."""
    transact = DynamoStore.transact

    def dying(self: DynamoStore, name: str, writes: Sequence[Write]) -> None:
        if name != action:
            return transact(self, name, writes)
        if applied:
            transact(self, name, writes)
        raise Killed

    monkeypatch.setattr(DynamoStore, "transact", dying)
    return lambda: monkeypatch.setattr(DynamoStore, "transact", transact)


def test_the_first_answer_again(stack: Deployment) -> None:
    ids = stack.fill(1)
    first = ask(stack, ids)
    assert "idempotency-replayed" not in first.headers
    stack.run()
    again = ask(stack, ids)
    assert (again.status, again.body) == (202, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert (jobs(stack), stack.prices(ids)) == (1, {11})
    assert stack.messages(Lane.SMALL) == (0, 0)


def test_another_body_under_the_same_key_is_422(stack: Deployment) -> None:
    ask(stack)
    before = stack.everything()
    for other in (
        ask(stack, ["other"]),
        ask(stack, subject="other"),
        ask(stack, params={"field": "price", "add": 2}),
        ask(stack, labels={"a": "b"}),
    ):
        assert (other.status, other.body["field"]) == (422, "Idempotency-Key")
    assert stack.everything() == before


def test_keys_belong_to_their_tenant(stack: Deployment) -> None:
    mine, theirs = ask(stack), ask(stack, tenant="other")
    assert theirs.status == 202
    assert theirs.body["id"] != mine.body["id"]
    # No tenant and key together look like another pair.
    assert stack.create(["a"], tenant="acm", headers={"Idempotency-Key": "eone"}).status == 202
    assert jobs(stack) == 3


def test_a_refused_request_is_not_remembered(stack: Deployment) -> None:
    holder = stack.created(["a"])
    assert ask(stack).status == 409
    assert stack.made.dynamodb.scan(TableName=IDEMPOTENCY)["Items"] == []
    assert stack.call("POST", f"/v1/jobs/{holder}/cancel").status == 202
    assert ask(stack).status == 202


def test_an_answer_that_cannot_be_remembered_is_still_the_answer(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise OSError("down")

    holder = stack.created(["a"])
    with monkeypatch.context() as broken:
        broken.setattr(DynamoDBPersistenceLayer, "_delete_record", down)
        assert ask(stack).body["code"] == "subject_busy"
    stack.call("POST", f"/v1/jobs/{holder}/cancel")
    age_progress(stack)
    with monkeypatch.context() as broken:
        broken.setattr(DynamoDBPersistenceLayer, "_update_record", down)
        first = ask(stack)
    assert first.status == 202
    age_progress(stack)
    assert ask(stack).body["id"] == first.body["id"]


def test_a_memory_that_is_down_is_503_and_nothing_is_done(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise OSError("down")

    before = stack.everything()
    with monkeypatch.context() as broken:
        broken.setattr(DynamoDBPersistenceLayer, "_put_record", down)
        answer = ask(stack)
    assert (answer.status, answer.body["code"]) == (503, "unavailable")
    assert stack.everything() == before


@pytest.mark.parametrize("finished", [False, True], ids=["still running", "finished"])
def test_a_crash_before_the_answer_was_stored_still_makes_one_job(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, *, finished: bool
) -> None:
    ids = stack.fill(1)
    revive = killed_after(monkeypatch, "dispatch_sent", applied=True)
    with pytest.raises(Killed):
        ask(stack, ids)
    revive()
    if finished:
        stack.run()
        assert stack.prices(ids) == {11}
    [made] = stack.kept("JOB")
    age_progress(stack)
    again = ask(stack, ids)
    assert (again.status, again.body["id"]) == (202, made["id"]["S"])
    assert again.headers["idempotency-replayed"] == "true"
    assert jobs(stack) == 1
    for _ in range(stack.messages(Lane.SMALL)[0]):
        stack.run()
    assert stack.prices(ids) == {11}


def test_a_crash_before_the_transaction_leaves_the_key_usable(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    revive = killed_after(monkeypatch, "create", applied=False)
    with pytest.raises(Killed):
        ask(stack)
    revive()
    assert ask(stack).status == 409
    age_progress(stack)
    first = ask(stack)
    assert first.status == 202
    assert ask(stack).body == first.body


def test_a_request_is_not_remembered_for_longer_than_its_job(stack: Deployment) -> None:
    ask(stack)
    [row] = stack.kept("REQUEST")
    [made] = stack.kept("JOB")
    until = int(row["expires_at_seconds"]["N"])
    created = int(made["created_at"]["N"]) // 1000
    assert until - created <= stack.world.timing.history


def test_an_old_request_may_be_made_again(stack: Deployment) -> None:
    """Also while its row has expired but is still there: DynamoDB deletes days late."""
    first = ask(stack, stack.fill(1))
    stack.run()
    [row] = stack.kept("REQUEST")
    stack.made.dynamodb.put_item(
        TableName="control", Item={**row, "expires_at_seconds": {"N": "1"}}
    )
    [item] = stack.made.dynamodb.scan(TableName=IDEMPOTENCY)["Items"]
    stack.made.dynamodb.put_item(TableName=IDEMPOTENCY, Item={**item, "expiration": {"N": "1"}})
    second = ask(stack)
    assert second.status == 202
    assert second.body["id"] != first.body["id"]


# --- cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("remaining", [0, 1, 500])
def test_c28_an_unfinished_request_never_blocks_for_longer_than_its_time(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, remaining: int
) -> None:
    revive = killed_after(monkeypatch, "create", applied=True)
    started = time.time()
    with pytest.raises(Killed):
        ask(stack, remaining=remaining)
    revive()
    [item] = stack.made.dynamodb.scan(TableName=IDEMPOTENCY)["Items"]
    until = int(item["in_progress_expiration"]["N"]) / 1000
    assert started - 1 < until <= time.time() + remaining / 1000
    age_progress(stack)
    [made] = stack.kept("JOB")
    assert ask(stack).body["id"] == made["id"]["S"]


def test_while_it_is_worked_on_the_same_request_is_told_to_wait(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Event(), threading.Event()
    transact = DynamoStore.transact

    def slow(self: DynamoStore, name: str, writes: Sequence[Write]) -> None:
        if name == "create":
            entered.set()
            go_on.wait(PATIENCE)
        transact(self, name, writes)

    monkeypatch.setattr(DynamoStore, "transact", slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask_patiently, stack)
        assert entered.wait(PATIENCE)
        second = ask_patiently(stack)
        go_on.set()
        assert first.result().status == 202
    assert (second.status, second.body["code"]) == (409, "in_progress")
    assert int(second.headers["retry-after"]) >= 1
    assert ask(stack).body == first.result().body


def test_c30_key_order_does_not_matter_and_no_key_equals_nothing(stack: Deployment) -> None:
    text = json.dumps(job(["a"])).replace('"add": 1', '"add": 1.50')
    turned = json.dumps(dict(reversed(job(["a"]).items())), indent=1)
    turned = turned.replace('"add": 1', '"add": 1.50')
    assert list(json.loads(text)) != list(json.loads(turned))
    one = stack.call("POST", "/v1/jobs", text, headers=KEY)
    two = stack.call("POST", "/v1/jobs", turned, headers=KEY)
    assert (two.status, two.body["id"]) == (202, one.body["id"])
    without = [stack.create(["a"], subject) for subject in ("x", "y")]
    assert [answer.status for answer in without] == [202, 202]
    assert without[0].body["id"] != without[1].body["id"]
    assert stack.call("POST", "/v1/jobs", text, headers={"Idempotency-Key": ""}).status == 400
    other = text.replace("1.50", "1.51")
    assert stack.call("POST", "/v1/jobs", other, headers=KEY).status == 422


def test_c31_of_twenty_requests_for_one_subject_one_wins(stack: Deployment) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: stack.create(["a"]), range(20)))
    won = [answer for answer in answers if answer.status == 202]
    lost = [answer for answer in answers if answer.status == 409]
    assert (len(won), len(lost)) == (1, 19)
    assert {answer.body["active_job"]["id"] for answer in lost} == {won[0].body["id"]}
    assert jobs(stack) == 1
    assert stack.kept("DISPATCH") == []
    assert stack.messages(Lane.SMALL) == (1, 0)
    [slots] = stack.kept("SLOTS")
    assert slots["in_flight"]["N"] == "1"


def test_c31_of_twenty_equal_requests_with_one_key_all_get_the_one_job(stack: Deployment) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: ask_patiently(stack), range(20)))
    assert {answer.status for answer in answers} <= {202, 409}
    assert {a.body["code"] for a in answers if a.status == 409} <= {"in_progress"}
    assert len({answer.body["id"] for answer in answers if answer.status == 202}) == 1
    assert jobs(stack) == 1
    assert stack.messages(Lane.SMALL) == (1, 0)


@pytest.mark.parametrize("key", [None, "one"])
@pytest.mark.parametrize("times", [1, 3])
def test_c32_a_lost_reply_is_not_a_conflict(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, key: str | None, times: int
) -> None:
    transact = DynamoStore.transact
    lost: list[str] = []

    def losing(self: DynamoStore, name: str, writes: Sequence[Write]) -> None:
        transact(self, name, writes)
        if name == "create" and len(lost) < times:
            lost.append(name)
            raise OutcomeUnknown

    monkeypatch.setattr(DynamoStore, "transact", losing)
    headers = {"Idempotency-Key": key} if key else None
    answer = stack.create(["a"], headers=headers)
    assert answer.status == 202
    assert "idempotency-replayed" not in answer.headers
    [made] = stack.kept("JOB")
    assert made["id"]["S"] == answer.body["id"]
    assert stack.messages(Lane.SMALL) == (1, 0)
    assert stack.kept("DISPATCH") == []


def test_c32_a_lost_reply_and_a_deaf_store_is_told_as_unsettled(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    transact = DynamoStore.transact

    def losing(self: DynamoStore, name: str, writes: Sequence[Write]) -> None:
        transact(self, name, writes)
        raise OutcomeUnknown

    def deaf(*_: object, **__: object) -> None:
        raise Transient("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(DynamoStore, "transact", losing)
        broken.setattr(DynamoStore, "get", deaf)
        broken.setattr(type(bootstrap.world("api").runtime), "sleep", lambda *_: None)
        answer = ask(stack)
    assert answer.status == 503
    assert "nothing was changed" not in answer.body["detail"]
    [made] = stack.kept("JOB")
    assert ask(stack).body["id"] == made["id"]["S"]
