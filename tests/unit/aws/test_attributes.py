"""Attribute values: written and read as boto3 does, but for whole numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from handlers.aws.attributes import decode, encode, encode_one
from handlers.jobs.words.stored_values import storable
from handlers.jobs.words.writes import Value

NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1) | st.decimals(
    allow_nan=False, allow_infinity=False, places=3, min_value=-(10**20), max_value=10**20
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(value=VALUES)
def test_a_value_is_written_as_boto3_writes_it_and_read_again(value: Value) -> None:
    [stored] = storable({"a": value}).values()
    written = encode({"a": value})
    assert written == {"a": TypeSerializer().serialize(stored)}
    assert encode_one("a", value) == written["a"]
    assert decode(written) == {"a": stored}


@given(value=VALUES)
def test_a_value_is_read_as_boto3_reads_it(value: Value) -> None:
    written = encode({"a": value})["a"]
    assert decode({"a": written})["a"] == TypeDeserializer().deserialize(written)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ({"N": "7"}, 7),
        (
            {"N": "-12345678901234567890123456789012345678"},
            -(12345678901234567890123456789012345678),
        ),
        ({"L": [{"N": "7"}]}, [7]),
        ({"M": {"b": {"N": "7"}}}, {"b": 7}),
    ],
)
def test_a_whole_number_is_an_int_at_any_depth(attribute: dict[str, Any], value: object) -> None:
    found = decode({"a": attribute})["a"]
    assert found == value
    assert "Decimal" not in repr(found)


@pytest.mark.parametrize("text", ["1.5", "1E+40", "70.0"])
def test_any_other_number_stays_a_decimal(text: str) -> None:
    assert repr(decode({"a": {"N": text}})["a"]) == repr(Decimal(text))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ({"SS": ["x", "y"]}, {"x", "y"}),
        ({"NS": ["1", "2.5"]}, {Decimal(1), Decimal("2.5")}),
        ({"B": b"x"}, Binary(b"x")),
        ({"BS": [b"x"]}, {Binary(b"x")}),
        ({"L": [{"SS": ["x"]}]}, [{"x"}]),
    ],
)
def test_sets_and_bytes_of_a_teams_own_table_are_boto3s(
    attribute: dict[str, Any], value: object
) -> None:
    assert decode({"a": attribute}) == {"a": value}
