"""ministack's database in this process, as it is and corrected, and random requests to it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Coroutine, Mapping
from contextvars import copy_context
from functools import cache
from types import ModuleType
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from scripts.local.emulator import correct

TABLE: Final = "records"


def fresh() -> ModuleType:
    """ministack's database module, once more, with tables of its own."""
    spec = importlib.util.find_spec("ministack.services.dynamodb")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def both() -> tuple[ModuleType, ModuleType]:
    """As it is, and corrected."""
    corrected = fresh()
    correct(corrected)
    return fresh(), corrected


NAMES: Final = ("a", "b", "tags")
NUMBERS: Final = st.sampled_from(["0", "1", "-7", "1.50", "12e3", "9" * 39, "none"])
SCALARS: Final = st.one_of(
    st.builds(lambda text: {"S": text}, st.text(max_size=3)),
    st.builds(lambda number: {"N": number}, NUMBERS),
    st.just({"BOOL": True}),
)
VALUES: Final = st.one_of(
    SCALARS,
    st.builds(lambda values: {"L": values}, st.lists(SCALARS, max_size=3)),
    st.builds(
        lambda values: {"M": values},
        st.dictionaries(st.sampled_from(["x", "y"]), SCALARS, max_size=2),
    ),
    st.builds(
        lambda members: {"SS": members},
        st.lists(st.sampled_from(["p", "q"]), min_size=1, max_size=2, unique=True),
    ),
)
UPDATES: Final = st.sampled_from(
    [
        "SET #a = :a, #v = #v + :one",
        "SET #a = :a, b = #a",
        "SET b = list_append(if_not_exists(b, :list), :list)",
        "SET b.x = :a REMOVE #a",
        "SET tags[0] = :a",
        "ADD #v :one, tags :set",
        "DELETE tags :set",
        "REMOVE b[0], #a",
        "SET ((#a)) = :a",
        "SET size = :a",
        "SET #a = ",
        "",
    ]
)
CONDITIONS: Final = st.sampled_from(
    [
        None,
        "#v = :one",
        "attribute_not_exists(#a) OR (#v < :one AND NOT contains(tags, :a))",
        "#v BETWEEN :one AND :one",
        "size(#a) > :one",
        "((#v = :one))",
        "#v = ",
        "",
    ]
)
KEYS: Final = st.sampled_from(["001", "1", "é"]).map(
    lambda name: {"tenant": {"S": "t"}, "id": {"S": name}}
)


def action(key: Mapping[str, Any], update: str, condition: str | None, a: object) -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "Key": key,
        "UpdateExpression": update,
        **({} if condition is None else {"ConditionExpression": condition}),
        "ExpressionAttributeNames": {"#a": "a", "#v": "version"},
        "ExpressionAttributeValues": {
            ":a": a,
            ":one": {"N": "1"},
            ":list": {"L": [{"S": "l"}]},
            ":set": {"SS": ["p"]},
        },
    }


def used(request: dict[str, Any]) -> dict[str, Any]:
    """Without the names and values its expressions do not mention, which would be refused."""
    text = request["UpdateExpression"] + request.get("ConditionExpression", "")
    for part in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        request[part] = {name: value for name, value in request[part].items() if name in text}
        if not request[part]:
            del request[part]
    return request


ACTIONS: Final = st.builds(action, KEYS, UPDATES, CONDITIONS, VALUES).map(used)
PUTS: Final = st.builds(
    lambda key, rest: {"TableName": TABLE, "Item": {**rest, **key}},
    KEYS,
    st.dictionaries(st.sampled_from([*NAMES, "version"]), VALUES, max_size=4),
)
TRANSACTIONS: Final = st.tuples(
    st.just("TransactWriteItems"),
    st.builds(
        lambda items, token: {
            "TransactItems": [{"Put" if "Item" in item else "Update": item} for item in items],
            "ReturnConsumedCapacity": "INDEXES",
            **({"ClientRequestToken": token} if token else {}),
        },
        st.lists(ACTIONS | PUTS, min_size=1, max_size=3),
        st.sampled_from(["", "", "one", "two"]),
    ),
)
REQUESTS: Final = st.one_of(
    st.tuples(st.just("PutItem"), PUTS),
    st.tuples(
        st.just("UpdateItem"),
        st.builds(
            lambda update, back: {**update, "ReturnValues": back},
            ACTIONS,
            st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_NEW", "UPDATED_OLD"]),
        ),
    ),
    TRANSACTIONS,
)


Answer: TypeAlias = tuple[int, Any]
"""The status and the decoded body."""


class Asked:
    """A request that is being answered. It waits for nothing but its turns, so no event loop is
    needed, and a test says when each is."""

    def __init__(self, module: ModuleType, what: str, request: Mapping[str, Any]) -> None:
        headers = {"x-amz-target": f"DynamoDB_20120810.{what}"}
        body = json.dumps(request).encode()
        self._answering: Coroutine[Any, None, tuple[int, Any, bytes]] = module.handle_request(
            "POST", "/", headers, body, {}
        )
        self._context = copy_context()

    def turn(self) -> Answer | None:
        """Go on until it lets others have their turn. The answer, at its end."""
        try:
            self._context.run(self._answering.send, None)
        except StopIteration as answered:
            status, _, body = answered.value
            return status, json.loads(body)
        return None

    def answer(self) -> Answer:
        """What it says in the end, when nobody else has a turn."""
        while True:
            if (answer := self.turn()) is not None:
                return answer


def ask(module: ModuleType, what: str, request: Mapping[str, Any]) -> Answer:
    return Asked(module, what, request).answer()


def empty(module: ModuleType) -> None:
    module.reset()
    keys = [("tenant", "HASH"), ("id", "RANGE")]
    made = {
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
    }
    assert ask(module, "CreateTable", made)[0] == 200
