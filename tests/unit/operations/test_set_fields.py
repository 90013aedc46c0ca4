"""set_fields: what it changes, skips and refuses."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from handlers.jobs.words.operation import Change, Skip
from handlers.operations import all_operations
from handlers.operations.set_fields import MAX_FIELDS, SetFields, set_fields

NAMES = st.text("abcdef", min_size=1, max_size=2)
PLAIN = (
    st.booleans()
    | st.integers(-9, 9)
    | st.decimals(-9, 9, places=1)
    | st.text("xy", max_size=2)
    | st.lists(st.booleans() | st.integers(0, 2), max_size=3)
    | st.dictionaries(NAMES, st.booleans() | st.integers(0, 2), max_size=2)
)
RECORDS = st.dictionaries(NAMES, PLAIN, max_size=6)
ASKED = st.dictionaries(NAMES, PLAIN | st.none(), min_size=1, max_size=6)


def carried_out(record: Mapping[str, Any], outcome: object) -> dict[str, Any]:
    """The record as it is after the outcome."""
    after = dict(record)
    if isinstance(outcome, Change):
        for name, value in outcome.fields.items():
            if value is None:
                del after[name]
            else:
                after[name] = value
    return after


def typed(value: object) -> object:
    """The value with its type, since True == 1."""
    if isinstance(value, list):
        return [typed(part) for part in value]
    if isinstance(value, dict):
        return {name: typed(part) for name, part in value.items()}
    return (type(value) is bool, value)


@given(RECORDS, ASKED)
def test_afterwards_the_record_has_what_was_asked_and_the_rest_is_untouched(
    record: dict[str, Any], asked: dict[str, Any]
) -> None:
    before = dict(record)

    after = carried_out(record, set_fields(record, SetFields(fields=asked)))

    kept = {name: value for name, value in before.items() if name not in asked}
    given_values = {name: value for name, value in asked.items() if value is not None}
    assert typed(after) == typed({**kept, **given_values})
    assert record == before


@given(RECORDS, ASKED)
def test_the_second_time_there_is_nothing_to_do(
    record: dict[str, Any], asked: dict[str, Any]
) -> None:
    parameters = SetFields(fields=asked)
    after = carried_out(record, set_fields(record, parameters))

    assert isinstance(set_fields(after, parameters), Skip)


@given(RECORDS, ASKED)
def test_it_writes_no_other_field_than_it_says(
    record: dict[str, Any], asked: dict[str, Any]
) -> None:
    parameters = SetFields(fields=asked)
    outcome = set_fields(record, parameters)

    changed = set(outcome.fields) if isinstance(outcome, Change) else set()
    assert changed <= all_operations()["set_fields"].writes(parameters) == set(asked)


def test_only_what_differs_is_written() -> None:
    outcome = set_fields({"a": 1, "b": 2}, SetFields(fields={"a": 1, "b": 3, "c": None}))

    assert outcome == Change({"b": 3})


def test_null_removes_a_field() -> None:
    assert set_fields({"a": 1}, SetFields(fields={"a": None})) == Change({"a": None})


def test_null_removes_a_field_that_is_stored_as_null() -> None:
    assert set_fields({"a": None}, SetFields(fields={"a": None})) == Change({"a": None})


@pytest.mark.parametrize(
    ("stored", "asked"),
    [(1, True), (True, 1), (Decimal(0), False), ("1", 1), ([1], [True]), ({"x": 0}, {"x": False})],
)
def test_a_value_of_another_type_is_another_value(stored: Any, asked: Any) -> None:
    assert set_fields({"a": stored}, SetFields(fields={"a": asked})) == Change({"a": asked})


@pytest.mark.parametrize(
    ("stored", "asked"),
    [(1, Decimal("1.0")), ((1, 2), [1, 2]), ({"x": (True,)}, {"x": [True]}), ("é", "é")],
)
def test_the_same_value_in_another_guise_is_the_same(stored: Any, asked: Any) -> None:
    assert isinstance(set_fields({"a": stored}, SetFields(fields={"a": asked})), Skip)


def test_no_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="at least 1"):
        SetFields(fields={})


def test_one_field_too_many_is_refused() -> None:
    fields: dict[str, Any] = {f"f{number}": 1 for number in range(MAX_FIELDS)}

    assert len(SetFields(fields=fields).fields) == MAX_FIELDS
    with pytest.raises(ValidationError, match=str(MAX_FIELDS)):
        SetFields(fields={**fields, "more": 1})


def test_a_bad_value_is_named() -> None:
    with pytest.raises(ValidationError) as caught:
        SetFields.model_validate_json('{"fields": {"good": 1, "bad": 1e999}}')

    assert [error["loc"] for error in caught.value.errors()] == [("fields", "bad")]


def test_numbers_from_json_reach_the_record_exactly() -> None:
    parameters = SetFields.model_validate_json('{"fields": {"a": 12345678901234567890.123456789}}')

    assert set_fields({}, parameters) == Change({"a": Decimal("12345678901234567890.123456789")})
