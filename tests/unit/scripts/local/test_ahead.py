"""A long transaction lets short requests overtake it, and is as atomic as one step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.local import ahead
from scripts.local.ahead import AT_ONCE, LONG, LONGEST, TURNS, Ahead
from scripts.local.emulator import correct
from tests.support.local_database import (
    REQUESTS,
    TABLE,
    TRANSACTIONS,
    Answer,
    Asked,
    ask,
    both,
    empty,
    fresh,
)

MANY: Final = 96


def key(number: int) -> dict[str, Any]:
    return {"tenant": {"S": "t"}, "id": {"S": f"{number:03}"}}


def change(number: int, version: int) -> dict[str, Any]:
    """Of a record that has this version."""
    return {
        "TableName": TABLE,
        "Key": key(number),
        "UpdateExpression": "SET #v = :next ADD changes :one",
        "ConditionExpression": "#v = :version",
        "ExpressionAttributeNames": {"#v": "version"},
        "ExpressionAttributeValues": {
            ":version": {"N": str(version)},
            ":next": {"N": str(version + 1)},
            ":one": {"N": "1"},
        },
    }


def transaction(actions: int = MANY, *, token: str = "") -> dict[str, Any]:
    named = {"ClientRequestToken": token} if token else {}
    return {"TransactItems": [{"Update": change(n, 1)} for n in range(actions)], **named}


def filled(module: ModuleType, records: int = MANY) -> ModuleType:
    """With so many records of version 1."""
    empty(module)
    for number in range(records):
        item = {**key(number), "version": {"N": "1"}, "changes": {"N": "0"}}
        assert ask(module, "PutItem", {"TableName": TABLE, "Item": item})[0] == 200
    return module


def changes(module: ModuleType) -> list[int]:
    """How often each record was changed."""
    found = ask(module, "Scan", {"TableName": TABLE})[1]["Items"]
    return [int(item["changes"]["N"]) for item in sorted(found, key=lambda item: item["id"]["S"])]


def turns(module: ModuleType, request: dict[str, Any]) -> int:
    asked = Asked(module, "TransactWriteItems", request)
    count = 1
    while asked.turn() is None:
        count += 1
    return count


# --- order -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("which", "order"), [(0, ["long", "short"]), (1, ["short", "long"])])
def test_a_short_request_overtakes_a_long_transaction(which: int, order: list[str]) -> None:
    """As it is, ministack answers the one that came first."""
    module = filled(both()[which])
    answered: list[str] = []

    async def sent(name: str, what: str, request: dict[str, Any]) -> None:
        headers = {"x-amz-target": f"DynamoDB_20120810.{what}"}
        status, *_ = await module.handle_request(
            "POST", "/", headers, json.dumps(request).encode(), {}
        )
        assert status == 200
        answered.append(name)

    async def at_the_same_time() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(sent("long", "TransactWriteItems", transaction()))
            group.create_task(sent("short", "GetItem", {"TableName": TABLE, "Key": key(5)}))

    asyncio.run(at_the_same_time())
    assert answered == order
    assert changes(module) == [1] * MANY


ALL_TURNS: Final = MANY // AT_ONCE * TURNS + 1


def test_others_have_turns_after_every_few_actions() -> None:
    assert turns(filled(both()[1]), transaction(MANY)) == ALL_TURNS


def test_an_action_that_cannot_be_worked_on_ahead_leaves_the_others_theirs() -> None:
    """Of a record that is gone, there is no number to add to; a put has nothing to evaluate."""
    module = filled(both()[1])
    request = transaction()
    first = request["TransactItems"][0]["Update"]
    first["UpdateExpression"] = "SET #v = changes + :one REMOVE #n"
    first["ExpressionAttributeNames"]["#n"] = "next"
    first["ExpressionAttributeValues"] = {":one": {"N": "1"}, ":version": {"N": "1"}}
    assert ask(module, "DeleteItem", {"TableName": TABLE, "Key": key(0)})[0] == 200
    assert turns(module, request) == ALL_TURNS
    request["TransactItems"][0] = {"Put": {"TableName": TABLE, "Item": key(0)}}
    assert turns(module, request) == ALL_TURNS


def test_a_request_after_a_long_one_of_the_same_connection_is_its_own() -> None:
    module = filled(both()[1])

    async def one_after_the_other() -> list[int]:
        statuses = []
        for request in (transaction(), {"TransactItems": [{"Update": change(0, 2)}]}):
            headers = {"x-amz-target": "DynamoDB_20120810.TransactWriteItems"}
            body = json.dumps(request).encode()
            status, *_ = await module.handle_request("POST", "/", headers, body, {})
            statuses.append(status)
        return statuses

    assert asyncio.run(one_after_the_other()) == [200, 200]
    assert changes(module) == [2, *[1] * (MANY - 1)]


@pytest.mark.parametrize("actions", [LONG - 1, LONGEST + 1])
def test_what_is_short_or_refused_unread_is_one_step(actions: int) -> None:
    assert turns(filled(both()[1], LONGEST + 1), transaction(actions)) == 1


def test_a_database_can_work_on_one_request_after_the_other() -> None:
    module = fresh()
    correct(module, one_by_one=True)
    assert turns(filled(module), transaction()) == 1
    assert changes(module) == [1] * MANY


def test_a_transaction_finds_its_answers_in_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else has changed anything, so no update is evaluated a second time."""
    evaluated: list[str] = []
    answer = Ahead.answer

    def counted(self: Ahead, function: Callable[..., Any], part: int, given: Any) -> Any:
        def called(*arguments: Any) -> Any:
            evaluated.append(function.__name__)
            return function(*arguments)

        keyed.setdefault(function, called)
        return answer(self, keyed[function], part, given)

    keyed: dict[Callable[..., Any], Callable[..., Any]] = {}
    monkeypatch.setattr(Ahead, "answer", counted)
    assert ask(filled(both()[1]), "TransactWriteItems", transaction())[0] == 200
    assert evaluated.count("_apply_update_expression") == MANY
    assert evaluated.count("_transact_write_action_error") == MANY
    # Once without an item, to see whether it is well-formed.
    assert evaluated.count("_evaluate_condition") == 2 * MANY


# --- atomicity -------------------------------------------------------------------------------


def conflict(module: ModuleType, after: int, number: int) -> Answer:
    """A long transaction's answer, when another request changes a record after so many actions."""
    asked = Asked(module, "TransactWriteItems", transaction())
    for _ in range(after // AT_ONCE * TURNS):
        assert asked.turn() is None
        assert not any(changes(module))
    assert ask(module, "UpdateItem", change(number, 1))[0] == 200
    return asked.answer()


@pytest.mark.parametrize("after", range(0, MANY + 1, AT_ONCE))
def test_a_change_at_any_turn_cancels_all_of_it(after: int) -> None:
    for number in (0, MANY - 1):
        module = filled(both()[1])
        status, answer = conflict(module, after, number)
        assert (status, answer["__type"]) == (400, "TransactionCanceledException")
        reasons = [reason["Code"] for reason in answer["CancellationReasons"]]
        assert reasons.index("ConditionalCheckFailed") == number
        assert reasons.count("None") == MANY - 1
        assert changes(module) == [int(each == number) for each in range(MANY)]


def test_answers_of_an_item_that_was_changed_since_would_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control of the test above: the first answer counts, whatever the arguments are now."""

    answer = Ahead.answer
    held: dict[int, bool] = {}

    def stale(self: Ahead, function: Callable[..., Any], part: int, given: Any) -> Any:
        if function.__name__ != "_evaluate_condition" or not given[1]:
            return answer(self, function, part, given)
        if id(given[part]) not in held:
            held[id(given[part])] = answer(self, function, part, given)
        return held[id(given[part])]

    monkeypatch.setattr(Ahead, "answer", stale)
    module = filled(both()[1])
    assert conflict(module, MANY, 0)[0] == 200
    assert changes(module) == [2, *[1] * (MANY - 1)]


@pytest.mark.parametrize(("token", "applied"), [("t", 1), ("", 2)])
def test_one_token_in_flight_twice_is_applied_once(token: str, applied: int) -> None:
    """Without a token, both are."""
    module = filled(both()[1])
    request = transaction(token=token)
    for member in request["TransactItems"]:
        update = member["Update"]
        update["UpdateExpression"] = "ADD changes :one"
        del update["ConditionExpression"], update["ExpressionAttributeNames"]
        update["ExpressionAttributeValues"] = {":one": {"N": "1"}}
    asked = [Asked(module, "TransactWriteItems", request) for _ in range(2)]
    answers: list[Answer] = []
    while len(answers) < len(asked):
        answers += [answer for each in asked if (answer := each.turn()) is not None]
    assert [status for status, _ in answers] == [200, 200]
    assert changes(module) == [applied] * MANY


def test_a_token_of_two_requests_in_flight_belongs_to_the_first() -> None:
    module = filled(both()[1])
    first, second = (
        Asked(module, "TransactWriteItems", transaction(actions, token="t"))
        for actions in (MANY, MANY - 1)
    )
    assert first.turn() is second.turn() is None
    assert first.answer()[0] == 200
    status, answer = second.answer()
    assert (status, answer["__type"]) == (400, "IdempotentParameterMismatchException")
    assert changes(module) == [1] * MANY


@given(
    before=st.lists(REQUESTS, max_size=3),
    long=TRANSACTIONS,
    between=st.lists(REQUESTS, min_size=1, max_size=3),
)
def test_what_overtakes_it_comes_before_all_of_it(
    before: list[tuple[str, Any]], long: tuple[str, Any], between: list[tuple[str, Any]]
) -> None:
    plain, corrected = both()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "LONG", 1)
        patch.setattr(ahead, "AT_ONCE", 1)
        patch.setattr(ahead, "TURNS", 1)
        for module in (plain, corrected):
            empty(module)
            for each in before:
                ask(module, *each)
        asked = Asked(corrected, *long)
        order: list[tuple[str, Any]] = []
        answers: list[Answer] = []
        ended = None
        for each in between:
            if ended is None and (ended := asked.turn()):
                order.append(long)
                answers.append(ended)
            order.append(each)
            answers.append(ask(corrected, *each))
        if ended is None:
            order.append(long)
            answers.append(asked.answer())
        assert answers == [ask(plain, *each) for each in order]
        found, expected = (ask(module, "Scan", {"TableName": TABLE}) for module in both())
        assert found == expected


def test_a_request_that_is_none_is_refused_as_before() -> None:
    """Whatever stands in an action's place."""
    plain, corrected = both()
    odd: object
    for odd in (None, 7, "Update", {}, {"Update": None}, {"Update": {}}, {"Put": {"Item": 1}}):
        request: dict[str, Any] = {"TransactItems": [odd] * LONG}
        answers = []
        for module in (filled(plain), filled(corrected)):
            try:
                answers.append(ask(module, "TransactWriteItems", request))
            except Exception as error:  # noqa: BLE001 - ministack makes an answer of each
                answers.append((500, f"{type(error).__name__}: {error}"))
        assert answers[0] == answers[1]
