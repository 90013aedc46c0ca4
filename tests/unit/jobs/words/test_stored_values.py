"""Values in the form in which every store gives them back."""

from __future__ import annotations

from decimal import Decimal

import pytest

from handlers.jobs.words.stored_values import BadValue, copied, number, size_of, storable, stored


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Decimal("1.500"), "1.5"),
        (Decimal(100), "100"),
        (Decimal("1E+37"), "1" + "0" * 37),
        (Decimal("1E+38"), "1E+38"),
        (10**38 - 1, "9" * 38),
        (Decimal("-0.0"), "0"),
    ],
)
def test_a_number_has_one_form(given: int | Decimal, kept: str) -> None:
    found = number(given)
    assert str(found) == kept
    assert isinstance(found, int) is ("E" not in kept and "." not in kept)


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("Infinity"), 10**38 + 1, Decimal("1E+126"), Decimal("1E-131")]
)
def test_a_number_that_no_store_holds(value: int | Decimal) -> None:
    with pytest.raises(BadValue):
        number(value)


def test_what_is_wrong_is_named_by_its_path() -> None:
    with pytest.raises(TypeError, match=r"'a\.b\[1\]' is a float"):
        storable({"a": {"b": [1, 0.5]}})  # type: ignore[list-item]  # on purpose
    with pytest.raises(BadValue, match="'a' holds half a surrogate pair"):
        stored("a", "\ud800")


def test_a_copy_shares_nothing() -> None:
    item = storable({"a": [{"b": (1, 2)}]})
    again = copied(item)
    assert again == item == {"a": [{"b": [1, 2]}]}
    inner = again["a"]
    assert isinstance(inner, list)
    inner.append(3)
    assert item == {"a": [{"b": [1, 2]}]}


def test_a_size_counts_names_and_bytes() -> None:
    assert size_of({"ab": "é"}) == 4
    assert size_of({"n": None, "t": True}) == 4
    assert size_of({"l": [1, 1]}) - size_of({"l": [1]}) == size_of({"l": [1]}) - size_of({"l": []})
