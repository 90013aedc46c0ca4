"""What of a request reaches the stored job: exact numbers, exact strings, each id once."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.selection.request import Accepted, BadRequest, TooLarge, accept, parse
from handlers.jobs.words.exact_json import exact_json
from handlers.jobs.words.limits import MAX_ID_BYTES
from handlers.jobs.words.text_rules import text_problem
from handlers.operations.registry import all_operations
from handlers.operations.set_fields import SetFields

OPERATIONS = all_operations()


def accepted(text: str, max_ids: int = 1000) -> Accepted:
    return accept(parse(text), OPERATIONS, max_ids=max_ids)


def body(number: str, ids: str = '["a"]') -> str:
    return (
        '{"operation":"set_fields","subject":"s","ids":'
        + ids
        + ',"params":{"fields":{"n":'
        + number
        + "}}}"
    )


@pytest.mark.parametrize(
    "number",
    [
        "0.1",
        "1.0",
        "1",
        "1E-7",
        "-0.0",
        "12345678901234567890.123456789",
        "99999999999999999999999999999999999999",
        "0.30000000000000000001",
        "1E+30",
        "0.1000000000000000055511151231257827",
    ],
)
def test_a_number_reaches_the_stored_parameters_as_it_was_written(number: str) -> None:
    stored = accepted(body(number)).params
    assert stored == '{"fields":{"n":' + number + "}}"
    again = json.loads(stored, parse_float=Decimal)
    fields = SetFields.model_validate(again).fields
    assert Decimal(fields["n"]) == Decimal(number)
    assert not isinstance(fields["n"], float)


def test_whole_and_decimal_ones_stay_apart_in_the_stored_parameters() -> None:
    assert accepted(body("1")).params != accepted(body("1.0")).params


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(JSON)
def test_exact_json_is_json_and_loses_nothing(value: Any) -> None:
    text = exact_json(value)
    assert "\n" not in text
    assert same(json.loads(text, parse_float=Decimal), value)


def same(one: Any, other: Any) -> bool:
    """Equal, with numbers compared exactly and never equal to booleans."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("value", [1.5, {1, 2}, object()])
def test_exact_json_refuses_what_is_not_exact(value: object) -> None:
    with pytest.raises(TypeError):
        exact_json(value)


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)))
def test_ids_stay_as_they_are_in_their_order_each_once(ids: list[str]) -> None:
    if not ids:
        return
    found = accepted(body("1", json.dumps(ids)))
    assert found.ids == tuple(dict.fromkeys(ids))
    assert found.duplicates == len(ids) - len(set(ids))


def test_c55_ids_that_look_alike_are_different() -> None:
    ids = ["007", "07", "7", " 7 ", "7 ", "1e5", "100000", "é", "e\u0301", "a", "A"]
    assert accepted(body("1", json.dumps(ids))).ids == tuple(ids)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("\x00", "control"),
        ("a\tb", "control"),
        ("a\x9fb", "control"),
        ("\ud800", "surrogate"),
        ("x" * 11, "at most 10"),
        ("é" * 6, "is 12 bytes"),
        ("😀" * 3, "is 12 bytes"),
    ],
)
def test_bad_text(text: str, problem: str) -> None:
    assert problem in (text_problem(text, 10) or "")


@pytest.mark.parametrize("text", ["x" * 10, "é" * 5, " ", "\u202e", "\u2028", "\ue000", "😀"])
def test_good_text(text: str) -> None:
    assert text_problem(text, 10) is None


def test_the_longest_id_passes() -> None:
    longest = "x" * MAX_ID_BYTES
    assert accepted(body("1", json.dumps([longest]))).ids == (longest,)


def test_the_number_of_ids_is_bounded_before_they_are_looked_at() -> None:
    assert accepted(body("1", '["a","b"]'), 2).ids == ("a", "b")
    with pytest.raises(TooLarge) as caught:
        accepted(body("1", '["a","b",7]'), 2)
    assert caught.value.field == "ids"


@pytest.mark.parametrize("depth", [33, 500, 100_000])
@pytest.mark.parametrize("before", ["", "1,", '"a",'], ids=["first", "after a number", "text"])
def test_nesting_is_bounded_wherever_it_is(depth: int, before: str) -> None:
    text = '{"ids": [' + before + "[" * depth + "]" * depth + "]}"
    with pytest.raises(BadRequest) as caught:
        parse(text)
    assert caught.value.field == ""


def test_the_allowed_depth_is_read() -> None:
    assert parse('{"a":' + "[" * 31 + "]" * 31 + "}")
