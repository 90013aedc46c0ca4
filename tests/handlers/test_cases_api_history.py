"""Who asked for what: a job shows its request, its creator and the requests that changed it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import execute
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.job import MAX_HISTORY
from handlers.jobs.words.writes import Update
from handlers.web.caller import MAX_PRINCIPAL
from tests.handlers.deployment import job
from tests.support.jobs import use_up

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

URL: Final = "/v1/jobs"


def acts(shown: Any) -> list[tuple[str, str]]:
    return [(entry["verb"], entry["by"]) for entry in shown["history"]]


def test_c85_each_verb_is_recorded_with_its_caller_and_time(stack: Deployment) -> None:
    made = stack.call("POST", URL, job(stack.fill(2)), principal="anna")
    url = f"{URL}/{made.body['id']}"
    assert (made.body["created_by"], "history" in made.body) == ("anna", False)
    asked = [("pause", "ben"), ("resume", "carla"), ("cancel", "dora")]
    for verb, who in asked:
        answer = stack.call("POST", f"{url}/{verb}", principal=who)
        assert answer.body["created_by"] == "anna"
        # A repeat changes nothing, and is nobody's.
        assert stack.call("POST", f"{url}/{verb}", principal="eve").status == 200
    shown = stack.call("GET", url).body
    assert acts(shown) == asked
    times = [entry["at"] for entry in shown["history"]]
    assert times == sorted(times)
    assert shown["created_at"] <= times[0]


def test_c85_a_running_job_and_a_retry_have_their_callers(stack: Deployment) -> None:
    id_ = stack.call("POST", URL, job(stack.fill(2)), principal="anna").body["id"]
    use_up(stack.world, stack.job(id_))
    stack.run()
    stack.call("POST", f"{URL}/{id_}/retry", principal="ben")
    begun = begin_attempt(stack.world, stack.job(id_), worker="w", receipt="r", expired=None)
    execute(stack.world, begun.transaction)
    stack.call("POST", f"{URL}/{id_}/pause", principal="carla")
    stack.call("POST", f"{URL}/{id_}/cancel", principal="dora")
    shown = stack.call("GET", f"{URL}/{id_}").body
    assert shown["state"] == "CANCELLING"
    assert acts(shown) == [("retry", "ben"), ("pause", "carla"), ("cancel", "dora")]


def test_c85_a_job_over_failed_records_is_of_who_asked_for_it(stack: Deployment) -> None:
    old = stack.created(stack.fill(1), params={"field": "no", "add": 1})
    stack.run()
    query = {"failed_only": "true"}
    made = stack.call("POST", f"{URL}/{old}/retry", query=query, principal="ben").body
    assert (made["created_by"], made["retry_of"]) == ("ben", old)
    assert made["request"]["params"] == {"field": "no", "add": 1}


def test_c85_the_request_is_shown_as_it_was_made(stack: Deployment) -> None:
    params = '{"field":"price","add":0.10}'
    body = (
        '{"operation":"adjust_number","subject":"s","ids":["007","7"],"params":' + params + ","
        '"tolerated_failure_percent":5,"stop_when_hopeless":false}'
    )
    headers = {"Idempotency-Key": "k"}
    first, again = (stack.call("POST", URL, body, headers=headers) for _ in range(2))
    shown = stack.call("GET", f"{URL}/{first.body['id']}")
    assert again.headers["idempotency-replayed"] == "true"
    assert first.body == again.body
    for answer in (first, again, shown):
        assert params in answer.text
        assert answer.body["request"] == {
            "params": {"field": "price", "add": 0.1},
            "ids": ["007", "7"],
            "tolerated_failure_percent": 5,
            "stop_when_hopeless": False,
        }
    [listed] = stack.call("GET", URL).body["jobs"]
    assert listed.keys() & {"request", "history"} == set()
    assert listed["created_by"] == "acme"


@pytest.mark.parametrize(("count", "shown"), [(100, True), (101, False)])
def test_c85_many_ids_are_counted_and_not_repeated(
    stack: Deployment, count: int, *, shown: bool
) -> None:
    answer = stack.create([f"r{n}" for n in range(count)])
    assert ("ids" in answer.body["request"]) is shown
    assert answer.body["total"] == count


def test_c85_the_history_is_bounded_and_the_newest_stay(stack: Deployment) -> None:
    url = f"{URL}/{stack.created(['a'])}"
    for n in range(MAX_HISTORY // 2 + 1):
        stack.call("POST", f"{url}/pause", principal=f"p{n}")
        stack.call("POST", f"{url}/resume", principal=f"p{n}")
    shown = stack.call("GET", url).body
    assert len(shown["history"]) == MAX_HISTORY
    assert acts(shown)[0] == ("pause", "p1")
    assert acts(shown)[-1] == ("resume", f"p{MAX_HISTORY // 2}")


def test_c85_a_long_or_missing_principal_does_no_harm(stack: Deployment) -> None:
    answer = stack.call("POST", URL, job(["a"]), principal="x" * 5000)
    assert answer.body["created_by"] == "x" * MAX_PRINCIPAL
    id_ = stack.created(["a"], "other")
    key = control_table.job_key(id_)
    old = Update(key, remove=("created_by", "history", "verbs"))
    stack.world.store.transact("of an older version", [old])
    shown = stack.call("GET", f"{URL}/{id_}").body
    assert shown.keys() & {"created_by", "history"} == set()
    stack.call("POST", f"{URL}/{id_}/cancel", principal="ben")
    assert acts(stack.call("GET", f"{URL}/{id_}").body) == [("cancel", "ben")]


def test_c85_the_log_of_requests_names_the_principal(
    stack: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.call("GET", URL, principal="anna")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    [line] = [line for line in lines if line["message"] == "request_answered"]
    assert line["principal"] == "anna"
