"""What parameters accept, and that numbers come through exactly."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from handlers.operations import FieldName, FieldValue, Number, Parameters
from handlers.operations.parameters import MAX_DEPTH, MAX_NAME_BYTES, RESERVED


class Sample(Parameters):
    name: FieldName = "name"
    value: FieldValue = None
    number: Number = Decimal(0)


def problem(text: str) -> str:
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate_json(text)
    return str(caught.value)


NUMBERS = st.builds(
    lambda sign, digits, exponent: Decimal(f"{sign}{digits}E{exponent}"),
    st.sampled_from(["", "-"]),
    st.integers(1, 10**38 - 1),
    st.integers(-130, 88),
)
"""Numbers a record can hold."""


@pytest.mark.parametrize(
    "text", ["0.1", "1e-7", "12345678901234567890.123456789", "-0.5", "100", "1E+40", "9.9e125"]
)
def test_json_numbers_are_exact(text: str) -> None:
    parameters = Sample.model_validate_json(f'{{"value": {text}, "number": {text}}}')

    assert parameters.number == Decimal(text)
    assert parameters.value == Decimal(text)
    assert not isinstance(parameters.value, float)


@given(NUMBERS)
def test_any_storable_number_comes_through_as_number_or_string(number: Decimal) -> None:
    written = str(number)

    assert Sample.model_validate_json(f'{{"number": {written}}}').number == number
    assert Sample.model_validate_json(f'{{"number": "{written}"}}').number == number
    assert Sample.model_validate({"number": number, "value": number}).value == number


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "NaN is not a JSON number"),
        ("Infinity", "Infinity is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
        ("1e126", "outside"),
        ("1e-131", "outside"),
        ("1" * 39, "38 digits"),
        ("0." + "1" * 39, "38 digits"),
        ("9" * 5000, "limit"),
    ],
)
@pytest.mark.parametrize("field", ["number", "value"])
def test_numbers_no_record_can_hold_are_refused(field: str, text: str, reason: str) -> None:
    assert reason in problem(f'{{"{field}": {text}}}')


@pytest.mark.parametrize(
    "text", ['"NaN"', '"Infinity"', '"1_0"', '" 1"', '""', '"٣"', "true", "[]"]
)
def test_what_is_not_a_number_is_refused_as_one(text: str) -> None:
    assert "number" in problem(f'{{"number": {text}}}')


@pytest.mark.parametrize("field", ["number", "value"])
def test_a_float_never_enters(field: str) -> None:
    with pytest.raises(ValidationError, match="float"):
        Sample.model_validate({field: 0.5})


@pytest.mark.parametrize("text", ["{", "", "\x00", '{"value": 1,}', "[" * 100_000])
def test_bad_json_is_a_validation_error(text: str) -> None:
    assert "not usable JSON" in problem(text)


def test_bytes_are_read_as_utf8() -> None:
    assert Sample.model_validate_json('{"value": "é"}'.encode()).value == "é"


def test_bytes_that_are_not_utf8_are_a_validation_error() -> None:
    with pytest.raises(ValidationError, match="not usable JSON"):
        Sample.model_validate_json(b'{"value": "\xff"}')


def test_unknown_fields_are_refused() -> None:
    assert "other" in problem('{"other": 1}')


def test_parameters_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Sample().name = "other"  # type: ignore[misc]  # that it is refused is the point


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_reserved_names_are_refused(name: str) -> None:
    assert "reserved" in problem(json.dumps({"name": name}))


@pytest.mark.parametrize("name", ["a\x00", "\n", "\x7f", "a\x85b"])
def test_names_with_control_characters_are_refused(name: str) -> None:
    assert "control character" in problem(json.dumps({"name": name}))
    assert "control character" in problem(json.dumps({"value": {name: 1}}))


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_names_that_cannot_be_stored_are_refused(name: str) -> None:
    assert "name" in problem(json.dumps({"name": name}))
    assert "value" in problem(json.dumps({"value": {name: 1}}))


def test_the_longest_name_passes_and_one_byte_more_does_not() -> None:
    longest = "é" * (MAX_NAME_BYTES // 2) + "e"

    assert Sample(name=longest).name == longest
    assert str(MAX_NAME_BYTES) in problem(json.dumps({"name": longest + "e"}))


def test_the_deepest_value_passes_and_one_level_more_does_not() -> None:
    deepest: object = 1
    for _ in range(MAX_DEPTH):
        deepest = [deepest]

    assert Sample(value=deepest).value == deepest
    assert "deep" in problem(json.dumps({"value": {"more": deepest}}))


@pytest.mark.parametrize("value", [[None], {"a": None}, {"a": [{"b": None}]}])
def test_null_inside_a_value_is_refused(value: object) -> None:
    assert "null" in problem(json.dumps({"value": value}))


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), {"a": {1}}])
def test_values_of_other_types_are_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="cannot be stored"):
        Sample(value=value)


def test_half_of_a_surrogate_pair_in_a_value_is_refused() -> None:
    assert "surrogate" in problem('{"value": ["\\ud83d"]}')


VALUES = st.recursive(
    st.booleans() | st.integers(-(10**38) + 1, 10**38 - 1) | NUMBERS | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_a_value_is_the_same_after_validation(value: object) -> None:
    assert Sample(value=value).value == value
