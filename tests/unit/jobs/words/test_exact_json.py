"""JSON is read, and refused, in the same way and in the same words by every Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.exact_json import (
    MAX_NESTED,
    NotJson,
    RepeatedName,
    exact_json,
    exact_loads,
    longer_than,
)


def nested(levels: int) -> str:
    return "[" * (levels + 1) + "]" * (levels + 1)


# The words are pydantic's and ours: the interpreter's differ (a trailing comma, since 3.13).
REFUSED = [
    ("", "EOF while parsing a value at line 1 column 0"),
    ("[1,]", "trailing comma at line 1 column 4"),
    ('{"a":1,}', "trailing comma at line 1 column 8"),
    ('{"a" 1}', "expected `:` at line 1 column 6"),
    ("1 2", "trailing characters at line 1 column 3"),
    ("\ufeff1", "expected value at line 1 column 1"),
    ("\ud800", "expected value at line 1 column 1"),
    ("NaN", "NaN is not a JSON number"),
    ("-Infinity", "-Infinity is not a JSON number"),
    ("9" * 5000, "an integer over the limit of digits"),
    ("1e" + "9" * 30, "a number no record can hold"),
    (b"\xff", "not UTF-8"),
    # The interpreters' limits begin at 1,000 levels, or at 100,000.
    *((nested(levels), "nested deeper than 200 levels") for levels in (201, 2000, 200_000)),
    *(("[" * levels, "nested deeper than 200 levels") for levels in (202, 2000, 200_000)),
    ('{"a":' * 2000, "nested deeper than 200 levels"),
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


def same(one: Any, other: Any) -> bool:
    """Equal, with numbers compared exactly and never equal to booleans."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_is_not_json_is_refused_in_known_words(text: str | bytes, why: str) -> None:
    with pytest.raises(NotJson) as caught:
        exact_loads(text)
    assert str(caught.value) == why


def test_what_is_json_is_read_exactly() -> None:
    read = exact_loads('{"a": [1, 1.50, true, null, "\\ud800[{"]}')
    assert read == {"a": [1, Decimal("1.50"), True, None, "\ud800[{"]}
    assert str(read["a"][1]) == "1.50"


def test_levels_are_counted_and_brackets_in_text_are_not() -> None:
    assert exact_loads(nested(MAX_NESTED))
    assert exact_loads('["' + "[{" * 500 + '"]')
    assert exact_loads("[" + ",".join(["[]"] * 500) + "]")
    assert exact_loads(nested(32), nested=32)
    with pytest.raises(NotJson, match="deeper than 32"):
        exact_loads(nested(33), nested=32)


@given(JSON)
def test_exact_json_is_json_and_loses_nothing(value: Any) -> None:
    text = exact_json(value)
    assert "\n" not in text
    assert same(json.loads(text, parse_float=Decimal), value)


@pytest.mark.parametrize("value", [1.5, {1, 2}, object()])
def test_exact_json_refuses_what_is_not_exact(value: object) -> None:
    with pytest.raises(TypeError):
        exact_json(value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1,"a":1}', ("a",)),
        ('{"b":[0,{"a":{"c":1,"d":2,"c":3}}]}', ("b", 1, "a", "c")),
        ('{"a":{"x":1,"x":2},"a":1}', ("a",)),
        ('{"a":1,"\\u0061":2}', ("a",)),
    ],
)
def test_c84_a_repeated_name_is_refused_with_its_path(text: str, path: tuple[str | int]) -> None:
    with pytest.raises(RepeatedName) as caught:
        exact_loads(text)
    assert caught.value.path == path


@given(JSON, st.integers(0, 60))
def test_c106_the_size_is_judged_as_it_would_be_written(value: object, limit: int) -> None:
    assert longer_than(value, limit) == (len(exact_json(value)) > limit)


class Endless(Mapping[str, object]):
    """An object that has more names than anybody may read."""

    def __init__(self) -> None:
        self.read = 0

    def __getitem__(self, name: str) -> object:
        return 1

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        while self.read < 1_000_000:
            self.read += 1
            yield f"n{self.read}"


def test_c106_no_more_is_read_than_the_limit_takes() -> None:
    endless = Endless()
    assert longer_than({"a": endless}, 64 * 1024)
    assert endless.read < 64 * 1024 / len('"n":1')
    assert longer_than({"a": [[1] * 1_000_000]}, 64 * 1024)
