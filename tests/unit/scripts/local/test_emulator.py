"""The corrections of ministack's database change what it costs, and nothing of what it answers."""

from __future__ import annotations

import copy
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.local import ahead, emulator, ministack, processes
from scripts.local.emulator import NAMES, Digest, copied, correct, once
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from tests.support.local_database import (
    REQUESTS,
    TABLE,
    action,
    ask,
    both,
    empty,
    fresh,
    used,
)

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


@pytest.mark.parametrize("long", [1, ahead.LONG])
@given(st.lists(REQUESTS, min_size=1, max_size=6))
def test_the_corrected_database_answers_as_the_other(
    long: int, requests: list[tuple[str, Any]]
) -> None:
    """Also when so few actions are worked on ahead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "LONG", long)
        _answers_the_same(requests)


def _answers_the_same(requests: list[tuple[str, Any]]) -> None:
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


# --- in the order of the requests --------------------------------------------------------------


@pytest.mark.parametrize("one_by_one", [True, False])
def test_a_database_is_started_as_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, one_by_one: bool
) -> None:
    """From the argument through the process's environment to the correction."""
    started: list[Mapping[str, str]] = []
    corrected: list[bool] = []

    def start(_: object, *, env: Mapping[str, str], **more: object) -> Process:
        started.append(env)
        return Process(pid=1, started=0, log=tmp_path / "log")

    monkeypatch.setattr(processes, "start", start)
    monkeypatch.setattr(ministack, "_wait_ready", lambda *_: True)
    ministack.start_database(tmp_path, lambda *_: None, one_by_one=one_by_one)
    monkeypatch.setattr(os, "environ", started[0])
    monkeypatch.setattr(emulator, "correct", lambda _, one_by_one: corrected.append(one_by_one))
    monkeypatch.setattr(emulator, "app", SimpleNamespace(AUTH=False, main=lambda: None))
    emulator.main()
    assert corrected == [one_by_one]


# --- another ministack -------------------------------------------------------------------------


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "version", lambda _: "1.5.34")
    with pytest.raises(LocalError, match=r"ministack 1\.5\.34 is installed.* corrects 1\.5\.33"):
        correct(fresh())


@pytest.mark.parametrize("name", NAMES)
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
