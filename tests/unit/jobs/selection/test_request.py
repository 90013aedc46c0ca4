"""What of a request reaches the stored job: exact numbers, exact strings, each id once."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.selection.request import Accepted, BadRequest, TooLarge, accept, parse
from handlers.jobs.words.limits import MAX_ID_BYTES
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
