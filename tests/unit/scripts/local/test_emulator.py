"""The corrections of ministack's database change what it costs, and nothing of what it answers."""

from __future__ import annotations

import copy
import importlib.util
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.local import emulator
from scripts.local.emulator import CORRECTIONS, Digest, copied, correct, once
from scripts.local.errors import LocalError

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


# --- copies ----------------------------------------------------------------------------------

LEAVES: Final = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TREES: Final = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def spoil(tree: object) -> None:
    """Change every list and dictionary of a tree."""
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for part in list(parts):
        spoil(part)
    if isinstance(tree, dict):
        tree["spoilt"] = True
    elif isinstance(tree, list):
        tree.append("spoilt")


@given(TREES)
def test_a_copy_is_equal_and_shares_nothing(tree: object) -> None:
    before = copy.deepcopy(tree)
    spoil(copied(tree))
    assert tree == before
    assert copied(tree) == before


def test_what_is_no_plain_json_is_copied_by_the_general_copy() -> None:
    odd = {"set": {1, 2}, "default": defaultdict(dict, a={"b": ["c"]}), "number": Decimal("1.50")}
    made = copied(odd)
    assert made == odd
    assert type(made["default"]) is defaultdict
    made["default"]["a"]["b"].append("d")
    made["set"].add(3)
    assert odd["default"]["a"]["b"] == ["c"]  # type: ignore[index]  # it is a dictionary
    assert odd["set"] == {1, 2}


# --- answers that are remembered ---------------------------------------------------------------


def test_a_function_is_called_once_for_each_text() -> None:
    called: list[str] = []

    def upper(text: str) -> str:
        called.append(text)
        return text.upper()

    ask = once(upper)
    assert [ask("a"), ask("b"), ask("a")] == ["A", "B", "A"]
    assert called == ["a", "b"]


def test_what_is_no_text_is_asked_each_time() -> None:
    assert once(type)(["unhashable"]) is list
    assert [once(repr)(value) for value in (1, True, 1.0)] == ["1", "True", "1.0"]


def test_the_tokens_of_an_expression_belong_to_the_caller() -> None:
    plain, corrected = both()
    expression = "SET #a = :a, b.c[1] = if_not_exists(d, :e) - :f"
    corrected._tokenize(expression).clear()
    assert corrected._tokenize(expression) == plain._tokenize(expression) != []


def test_a_digest_is_equal_to_requests_of_the_same_content() -> None:
    request = {"TransactItems": [{"Put": {"Item": {"pk": {"S": "é"}}}}], "b": 1}
    assert Digest(request) == dict(reversed(request.items()))
    assert Digest(request) != {**request, "b": 2}


# --- the whole database, beside the one that is not corrected ----------------------------------

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
    st.tuples(
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
    ),
)


def ask(module: ModuleType, what: str, request: Mapping[str, Any]) -> tuple[int, Any]:
    sent = json.dumps(request).encode()
    answering = module.handle_request(
        "POST", "/", {"x-amz-target": f"DynamoDB_20120810.{what}"}, sent, {}
    )
    # It waits for nothing, so no event loop is needed.
    with pytest.raises(StopIteration) as answered:
        answering.send(None)
    status, _, body = answered.value.value
    return status, json.loads(body)


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


@given(st.lists(REQUESTS, min_size=1, max_size=6))
def test_the_corrected_database_answers_as_the_other(requests: list[tuple[str, Any]]) -> None:
    for module in both():
        empty(module)
    for what, request in requests:
        expected, answer = (ask(module, what, request) for module in both())
        assert answer == expected
        plain, corrected = (ask(module, "Scan", {"TableName": TABLE}) for module in both())
        assert corrected == plain


def test_a_token_stands_for_one_request_in_both() -> None:
    for module in both():
        empty(module)
        key = {"tenant": {"S": "t"}, "id": {"S": "1"}}
        request = {
            "ClientRequestToken": "t",
            "TransactItems": [{"Update": used(action(key, "ADD #v :one", None, {"S": ""}))}],
        }
        assert [ask(module, "TransactWriteItems", request)[0] for _ in range(2)] == [200, 200]
        request["TransactItems"] = [{"Update": used(action(key, "ADD b :one", None, {"S": ""}))}]
        status, answer = ask(module, "TransactWriteItems", request)
        assert (status, answer["__type"]) == (400, "IdempotentParameterMismatchException")
        assert ask(module, "Scan", {"TableName": TABLE})[1]["Items"] == [
            {**key, "version": {"N": "1"}}
        ]


# --- another ministack -------------------------------------------------------------------------


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "version", lambda _: "1.5.34")
    with pytest.raises(LocalError, match=r"ministack 1\.5\.34 is installed.* corrects 1\.5\.33"):
        correct(fresh())


@pytest.mark.parametrize("name", ["copy", *CORRECTIONS])
@pytest.mark.parametrize("other", [None, lambda other: other])
def test_a_database_that_does_something_else_is_refused(
    name: str, other: Callable[..., Any] | None
) -> None:
    module = fresh()
    setattr(module, name, other)
    with pytest.raises(LocalError, match=f"no {name} as"):
        correct(module)
    assert module.copy is not emulator.copied


def test_a_corrected_database_is_not_corrected_again() -> None:
    with pytest.raises(LocalError, match="corrected already"):
        correct(both()[1])
