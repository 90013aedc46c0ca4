"""adjust_number: exact arithmetic, in a stated order, within what a record can hold."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from handlers.jobs.words.operation import Change, Fail, Skip
from handlers.operations import all_operations
from handlers.operations.adjust_number import AdjustNumber, adjust_number

NUMBERS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.integers(-(10**12), 10**12),
    st.integers(-12, 12),
)
ANY_STORABLE = st.builds(
    lambda digits, exponent: Decimal(f"{digits}E{exponent}"),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-130, 88),
)
UNITS = st.integers(-(10**12), 10**12)
"""Of the last decimal place."""


def run(before: Any, **parameters: Any) -> Any:
    return adjust_number({"n": before}, AdjustNumber(field="n", **parameters))


def result(before: Any, **parameters: Any) -> Any:
    """The number afterwards, or the failure."""
    outcome = run(before, **parameters)
    if isinstance(outcome, Change):
        assert set(outcome.fields) == {"n"}
        return outcome.fields["n"]
    return before if isinstance(outcome, Skip) else outcome


def fits(number: Fraction) -> bool:
    """Whether a record can hold the number: at most 38 digits and of a size DynamoDB takes."""
    if not number:
        return True
    ten = Fraction(10)
    if not ten**-130 <= abs(number) < ten**126:
        return False
    scaled = abs(number) * ten**300
    return scaled.denominator == 1 and len(str(scaled.numerator).strip("0")) <= 38


@given(ANY_STORABLE, ANY_STORABLE, ANY_STORABLE)
def test_it_is_exact_or_it_fails(before: Decimal, multiply: Decimal, add: Decimal) -> None:
    expected = Fraction(before) * Fraction(multiply) + Fraction(add)

    got = result(before, multiply=multiply, add=add)

    if fits(expected):
        assert Fraction(got) == expected
    else:
        assert isinstance(got, Fail)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_the_context_of_the_thread_has_no_say(
    before: Decimal, multiply: Decimal, add: Decimal
) -> None:
    expected = Fraction(before) * Fraction(multiply) + Fraction(add)
    assume(fits(expected))
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP):
        assert Fraction(result(before, multiply=multiply, add=add)) == expected


@given(NUMBERS, NUMBERS, NUMBERS, UNITS, UNITS, st.integers(0, 12))
def test_the_order_is_multiply_add_clamp_round(
    before: Decimal, multiply: Decimal, add: Decimal, one: int, other: int, places: int
) -> None:
    low, high = sorted(Decimal(bound).scaleb(-places) for bound in (one, other))

    got = result(before, multiply=multiply, add=add, minimum=low, maximum=high, places=places)

    exact = Fraction(before) * Fraction(multiply) + Fraction(add)
    clamped = min(max(exact, Fraction(low)), Fraction(high))
    rounded = round(clamped, places)  # of a Fraction: half to even
    assert Fraction(got) == rounded if fits(Fraction(rounded)) else isinstance(got, Fail)


@given(ANY_STORABLE, UNITS, UNITS, st.integers(0, 12))
def test_the_result_is_within_the_bounds(
    before: Decimal, one: int, other: int, places: int
) -> None:
    low, high = sorted(Decimal(bound).scaleb(-places) for bound in (one, other))

    got = result(before, minimum=low, maximum=high, places=places)

    assert low <= got <= high


@pytest.mark.parametrize(
    ("before", "parameters", "after"),
    [
        (Decimal("19.99"), {"multiply": "1.1"}, Decimal("21.989")),
        (Decimal("19.99"), {"multiply": "1.1", "places": 2}, Decimal("21.99")),
        (Decimal("0.1"), {"add": "0.2"}, Decimal("0.3")),
        (7, {"add": 1}, 8),
        (7, {"add": "0.5", "places": 0}, 8),
        (Decimal("0.125"), {"add": 0, "places": 2}, Decimal("0.12")),
        (Decimal("0.375"), {"add": 0, "places": 2}, Decimal("0.38")),
        (Decimal("2.5"), {"multiply": -1, "places": 0}, -2),
        (5, {"maximum": 3}, 3),
        (5, {"minimum": 8, "maximum": 9}, 8),
        (10**37, {"multiply": 100}, Decimal("1E39")),
        (5, {"multiply": 0}, 0),
    ],
)
def test_examples(before: Any, parameters: dict[str, Any], after: Any) -> None:
    assert run(before, **parameters) == Change({"n": after})


def test_json_numbers_are_exact() -> None:
    text = '{"field": "n", "multiply": 1.1, "add": 12345678901234567890.123456789}'

    outcome = adjust_number({"n": Decimal("0.1")}, AdjustNumber.model_validate_json(text))

    assert outcome == Change({"n": Decimal("12345678901234567890.233456789")})


@pytest.mark.parametrize("before", ["7", True, False, None, [7], {"x": 7}])
def test_what_is_not_a_number_fails_by_name(before: Any) -> None:
    assert run(before, add=1) == Fail("field 'n' is not a number")


def test_a_missing_field_fails_by_name() -> None:
    assert adjust_number({}, AdjustNumber(field="n", add=Decimal(1))) == Fail(
        "field 'n' is missing"
    )


@pytest.mark.parametrize(
    ("before", "parameters"),
    [
        (Decimal("9E125"), {"multiply": 2}),
        (Decimal("9E125"), {"add": "9E125"}),
        (Decimal("1E-130"), {"multiply": "0.1"}),
        (10**37, {"add": "1E-1"}),
        (Decimal("NaN"), {"add": 1}),
        (Decimal("Infinity"), {"maximum": 1}),
        (Decimal("1E-200"), {"maximum": 1}),
    ],
)
def test_what_cannot_be_stored_fails_by_name(before: Any, parameters: dict[str, Any]) -> None:
    outcome = run(before, **parameters)

    assert isinstance(outcome, Fail)
    assert "'n'" in outcome.reason


def test_a_number_that_stays_as_it_is_is_skipped() -> None:
    assert run(5, multiply=1, add=0, minimum=0, maximum=9, places=2) == Skip(
        "field 'n' stays as it is"
    )


def test_the_record_is_not_touched() -> None:
    record: dict[str, Any] = {"n": Decimal(1), "other": "x"}
    adjust_number(record, AdjustNumber(field="n", add=Decimal(1)))

    assert record == {"n": Decimal(1), "other": "x"}


def test_it_writes_its_field() -> None:
    parameters = AdjustNumber(field="n", add=Decimal(1))

    assert all_operations()["adjust_number"].writes(parameters) == {"n"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"field": "n"}', "at least one of"),
        ('{"field": "n", "places": 2}', "at least one of"),
        ('{"add": 1}', "field"),
        ('{"field": "id", "add": 1}', "reserved"),
        ('{"field": "n", "add": 1, "subtract": 1}', "subtract"),
        ('{"field": "n", "minimum": 2, "maximum": 1}', "minimum 2 is greater than maximum 1"),
        ('{"field": "n", "minimum": 0.125, "places": 2}', "minimum 0.125 has more decimals"),
        ('{"field": "n", "maximum": 0.125, "places": 2}', "maximum 0.125 has more decimals"),
        ('{"field": "n", "add": 1, "places": -1}', "places"),
        ('{"field": "n", "add": 1, "places": 131}', "places"),
        ('{"field": "n", "add": 1, "places": 1.5}', "places"),
        ('{"field": "n", "add": 1, "places": true}', "places"),
        ('{"field": "n", "add": NaN}', "NaN"),
        ('{"field": "n", "multiply": "1e126"}', "multiply"),
    ],
)
def test_parameters_without_sense_are_refused(text: str, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        AdjustNumber.model_validate_json(text)


def test_bounds_that_are_equal_are_fine() -> None:
    assert run(1, minimum=2, maximum=2) == Change({"n": 2})
