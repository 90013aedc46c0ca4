"""Reading a few jobs of a local stack's table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from handlers.aws.attributes import encode
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import MOST_AT_ONCE, Ledger
from scripts.local.stack import LocalStack

TABLE = "control"


class Database:
    """Answers for at most three keys at once, in the other order."""

    def __init__(self, *jobs: str) -> None:
        self.jobs = jobs
        self.asked: list[int] = []

    def batch_get_item(self, *, RequestItems: Any) -> Any:  # noqa: N803  boto3's name
        request = RequestItems[TABLE]
        ids = [key["pk"]["S"].removeprefix("JOB#") for key in request["Keys"]]
        self.asked.append(len(ids))
        found = [_item(id_) for id_ in reversed(ids[:3]) if id_ in self.jobs]
        rest = {**request, "Keys": request["Keys"][3:]}
        return {
            "Responses": {TABLE: found},
            "UnprocessedKeys": {TABLE: rest} if rest["Keys"] else {},
        }


def _item(id_: str) -> Any:
    return encode(
        {
            "id": id_,
            "tenant": "t",
            "subject": "s",
            "lane": Lane.BULK.value,
            "state": State.RUNNING.value,
            "position": 5,
            "succeeded": 5,
            "failed": 0,
            "skipped": 0,
            "attempt": 1,
            "created_at": 1,
            "worked_ms": 700,
        }
    )


def ledger_of(database: Database) -> Ledger:
    stack = SimpleNamespace(clients=SimpleNamespace(dynamodb=database))
    ledger = Ledger(cast("LocalStack", stack))
    ledger.__dict__["settings"] = SimpleNamespace(control_table=TABLE)
    return ledger


def test_jobs_come_in_the_order_that_was_asked_for() -> None:
    ids = [f"j{number}" for number in range(7)]
    database = Database(*ids)
    rows = ledger_of(database).jobs_of([*ids, "j0"])
    assert [row.id for row in rows] == [*ids, "j0"]
    assert rows[0].worked_ms == 700
    assert database.asked == [7, 4, 1]


def test_many_jobs_are_asked_for_in_several_calls() -> None:
    ids = [f"j{number}" for number in range(MOST_AT_ONCE + 1)]
    database = Database(*ids)
    assert len(ledger_of(database).jobs_of(ids)) == MOST_AT_ONCE + 1
    assert max(database.asked) == MOST_AT_ONCE


def test_a_job_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        ledger_of(Database("j0")).jobs_of(["j0", "j1"])
