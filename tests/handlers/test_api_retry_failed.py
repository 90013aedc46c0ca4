"""A retry of only the failed records is a job of its own, made once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from handlers.aws.job_store import DynamoStore
from handlers.jobs.results import items
from handlers.jobs.words.errors import OutcomeUnknown
from handlers.jobs.words.job import Lane
from handlers.web import item_results
from tests.handlers.mixed_jobs import mixed
from tests.support import aws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.writes import Write
    from tests.handlers.deployment import Answer, Deployment


def again(stack: Deployment, id_: str, **call: Any) -> Answer:
    return stack.call("POST", f"/v1/jobs/{id_}/retry", query={"failed_only": "true"}, **call)


def mend(stack: Deployment, ids: Sequence[str]) -> None:
    for id_ in ids:
        stack.made.dynamodb.put_item(
            TableName=aws.RECORDS,
            Item={"tenant": {"S": "acme"}, "id": {"S": id_}, "price": {"N": "10"}},
        )


@pytest.mark.parametrize("count", [3, 120])
def test_the_failed_records_are_tried_again_by_a_job_of_their_own(
    stack: Deployment, count: int
) -> None:
    id_, failed = mixed(stack, 3, 2, count)
    mend(stack, failed[:-1])
    before = stack.call("GET", f"/v1/jobs/{id_}").body
    made = again(stack, id_)
    assert (made.status, made.body["state"], made.body["retry_of"]) == (202, "QUEUED", id_)
    assert (made.body["total"], made.body["subject"]) == (count, "products")
    assert made.body["lane"] == ("small" if count <= 100 else "bulk")
    assert made.headers["location"] == f"/live/v1/jobs/{made.body['id']}" != f"/live/v1/jobs/{id_}"
    assert stack.call("GET", f"/v1/jobs/{id_}").body == {
        **before,
        "retried_by": made.body["id"],
    }
    stack.run(Lane(made.body["lane"]))
    done = stack.call("GET", made.headers["location"]).body
    assert (done["succeeded"], done["failed"], done["skipped"]) == (count - 1, 1, 0)
    # Each of the others exactly once, by the first job.
    assert stack.prices(stack_ids(stack, 3)) == stack.prices(failed[:-1]) == {11}
    assert stack.everything()["objects"] == []


def stack_ids(_: Deployment, count: int) -> list[str]:
    return [f"r{n:05}" for n in range(count)]


def test_asked_again_it_is_the_same_job_also_after_it_has_ended(stack: Deployment) -> None:
    id_, failed = mixed(stack, 1, 0, 2)
    mend(stack, failed)
    made = again(stack, id_)
    repeated = again(stack, id_)
    assert (repeated.status, repeated.body) == (200, made.body)
    stack.run()
    assert again(stack, id_).body["id"] == made.body["id"]
    assert len(stack.kept("JOB")) == 2
    assert stack.prices(failed) == {11}  # a second job would make it 12


def test_twenty_at_once_make_one_job(stack: Deployment) -> None:
    id_, failed = mixed(stack, 1, 0, 2)
    mend(stack, failed)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: again(stack, id_), range(20)))
    # Whoever came in the moment of its making sees its subject taken, by the very same job.
    ids = {a.body["active_job"]["id"] if a.status == 409 else a.body["id"] for a in answers}
    assert {202} <= {a.status for a in answers} <= {200, 202, 409}
    assert len(ids) == 1
    assert stack.messages(Lane.SMALL) == (1, 0)
    assert stack.everything()["objects"] == [f"ids/{ids.pop()}"]
    stack.run()
    assert stack.prices(failed) == {11}


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_reply_makes_no_second_job(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, *, applied: bool
) -> None:
    id_, failed = mixed(stack, 1, 0, 2)
    mend(stack, failed)
    transact = DynamoStore.transact
    lost: list[str] = []

    def losing(self: DynamoStore, action: str, writes: Sequence[Write]) -> None:
        if action != "create" or lost:
            return transact(self, action, writes)
        lost.append(action)
        if applied:
            transact(self, action, writes)
        raise OutcomeUnknown

    monkeypatch.setattr(DynamoStore, "transact", losing)
    answer = again(stack, id_)
    assert (answer.status, lost) == (202, ["create"])
    assert stack.job(id_).retried_by == answer.body["id"]
    stack.run()
    assert stack.prices(failed) == {11}
    assert len(stack.kept("JOB")) == 2


def test_a_retry_that_takes_too_long_says_so_and_leaves_nothing(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "ROWS", 1)
    id_, failed = mixed(stack, 1, 0, 120)
    before, asked = stack.everything(), len(stack.requests)
    answer = again(stack, id_, remaining=item_results.RESERVE_MS - 1)
    assert (answer.status, answer.body["code"]) == (422, "retry_too_large")
    assert "upload" in answer.body["detail"]
    look_for_rows_of_0_1_0, first_row = 1, 1
    queries = stack.requests[asked:].count("DynamoDB.Query")
    assert queries == look_for_rows_of_0_1_0 + first_row
    assert stack.everything() == before
    made = again(stack, id_, remaining=item_results.RESERVE_MS)
    assert (made.status, made.body["total"]) == (202, len(failed))


def test_a_chain_of_retries(stack: Deployment) -> None:
    id_, failed = mixed(stack, 1, 0, 2)
    first = again(stack, id_).body["id"]
    stack.run()
    second = again(stack, first).body
    assert (second["retry_of"], second["total"]) == (first, 2)
    mend(stack, failed)
    stack.run()
    assert stack.job(second["id"]).succeeded == 2


def test_a_taken_subject_refuses_it_and_leaves_nothing(stack: Deployment) -> None:
    id_, _ = mixed(stack, 1, 0, 2)
    holder = stack.created(["a"])
    before = stack.everything()
    answer = again(stack, id_)
    assert (answer.status, answer.body["active_job"]["id"]) == (409, holder)
    assert stack.everything() == before


def test_what_cannot_be_tried_again(stack: Deployment) -> None:
    waiting = stack.created(["a"], "waiting")
    good = stack.created(stack.fill(1), "good")
    stack.call("POST", f"/v1/jobs/{waiting}/pause")
    stack.run()
    stack.run()
    for id_ in (waiting, good):
        before = stack.everything()
        answer = again(stack, id_)
        assert (answer.status, answer.body["code"]) == (409, "not_possible"), answer
        assert stack.everything() == before
    assert stack.job(good).state == "SUCCEEDED"


def test_a_failed_job_whose_failed_records_are_tried_again_does_not_go_on_itself(
    stack: Deployment,
) -> None:
    id_ = stack.created(
        stack.fill(2), params={"field": "no", "add": 1}, tolerated_failure_percent=0
    )
    stack.run()
    made = again(stack, id_)
    assert made.status == 202
    stack.run()
    answer = stack.call("POST", f"/v1/jobs/{id_}/retry")
    assert answer.status == 409
    assert made.body["id"] in answer.body["detail"]
