"""The filter language: what it takes, what it refuses, and what it selects."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from handlers.jobs.words.filters import Filter, matches
from handlers.jobs.words.limits import MAX_FILTER_CONDITIONS, MAX_FILTER_VALUES
from handlers.jobs.words.stored_values import number

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Value


def one(field: str, op: str, value: object) -> Filter:
    return Filter.model_validate({"all": [{"field": field, "op": op, "value": value}]})


ABSENT: Any = object()

# op, value of the condition, value of the field, whether it is selected
ANSWERS: list[tuple[str, object, Any, bool]] = [
    ("eq", "a", "a", True),
    ("eq", "a", "A", False),
    ("eq", "a", ABSENT, False),
    ("eq", "é", "e\u0301", False),
    ("eq", "007", "7", False),
    ("eq", "7", 7, False),
    ("eq", 7, "7", False),
    ("eq", 1, Decimal("1.00"), True),
    ("eq", Decimal("0.1"), Decimal("0.10"), True),
    ("eq", Decimal("0.1"), Decimal("0.1000000000000000055511151231257827"), False),
    ("eq", 2**63, 2**63 + 1, False),
    ("eq", 1, True, False),
    ("eq", True, 1, False),
    ("eq", True, True, True),
    ("eq", False, 0, False),
    ("eq", "a", ["a"], False),
    ("eq", "a", None, False),
    ("ne", "a", "b", True),
    ("ne", "a", "a", False),
    ("ne", "a", ABSENT, True),
    ("ne", "a", None, True),
    ("ne", "a", ["a"], True),
    ("ne", 1, True, True),
    ("ne", 1, Decimal("1.0"), False),
    ("in", ["a", 7], "a", True),
    ("in", ["a", 7], 7, True),
    ("in", ["a", 7], "7", False),
    ("in", ["a", 1], True, False),
    ("in", ["a"], ABSENT, False),
    ("lt", 10, 9, True),
    ("lt", 10, 10, False),
    ("lt", 10, Decimal("9.99999999999999999999999999999"), True),
    ("lt", 10, "9", False),
    ("lt", 10, ABSENT, False),
    ("lt", 10, None, False),
    ("lt", 10, True, False),
    ("lte", 10, 10, True),
    ("lte", 10, Decimal("10.0000000000000000000000000001"), False),
    ("gt", 10, 11, True),
    ("gt", 10, 10, False),
    ("gte", 10, 10, True),
    ("gte", "b", "b", True),
    ("gte", "b", "a", False),
    ("gt", "Z", "a", True),
    ("gt", "\uffff", "\U00010000", True),
    ("gt", "a", 1, False),
    ("prefix", "ab", "abc", True),
    ("prefix", "ab", "ab", True),
    ("prefix", "ab", "a", False),
    ("prefix", "ab", "ABC", False),
    ("prefix", "1", 12, False),
    ("prefix", "a", ABSENT, False),
    ("exists", True, "a", True),
    ("exists", True, "", True),
    ("exists", True, False, True),
    ("exists", True, [], True),
    ("exists", True, None, False),
    ("exists", True, ABSENT, False),
    ("exists", False, ABSENT, True),
    ("exists", False, None, True),
    ("exists", False, 0, False),
]


@pytest.mark.parametrize(("op", "value", "field", "selected"), ANSWERS)
def test_what_a_condition_selects(op: str, value: object, field: Any, *, selected: bool) -> None:
    fields = {} if field is ABSENT else {"f": field}
    assert matches(one("f", op, value), fields) is selected


def test_every_condition_has_to_hold() -> None:
    both = Filter.model_validate(
        {
            "all": [
                {"field": "a", "op": "gte", "value": 1},
                {"field": "a", "op": "lt", "value": 3},
                {"field": "b", "op": "eq", "value": "x"},
            ]
        }
    )
    assert matches(both, {"a": 2, "b": "x"})
    assert not matches(both, {"a": 3, "b": "x"})
    assert not matches(both, {"a": 2, "b": "y"})
    assert both.fields == {"a", "b"}


def condition(**changed: object) -> dict[str, object]:
    return {"field": "f", "op": "eq", "value": "x", **changed}


REFUSED: list[object] = [
    {},
    {"all": []},
    {"all": None},
    {"all": {}},
    {"all": "x"},
    {"any": [condition()]},
    {"all": [condition()], "any": []},
    {"all": [condition()], "limit": 1},
    {"all": [{}]},
    {"all": [None]},
    {"all": [[]]},
    {"all": [{"all": [condition()]}]},
    {"all": [{"field": "f"}]},
    {"all": [{"field": "f", "op": "eq"}]},
    {"all": [{"op": "eq", "value": 1}]},
    {"all": [condition(more=1)]},
    {"all": [condition(op="like")]},
    {"all": [condition(op="EQ")]},
    {"all": [condition(op=["eq"])]},
    {"all": [condition(op=None)]},
    {"all": [condition(field="")]},
    {"all": [condition(field=7)]},
    {"all": [condition(field="a\x00")]},
    {"all": [condition(field="\ud800")]},
    {"all": [condition(field="x" * 256)]},
    {"all": [condition(field="tenant")]},
    {"all": [condition(field="id")]},
    {"all": [condition(field="version")]},
    {"all": [condition(value=None)]},
    {"all": [condition(value=1.5)]},
    {"all": [condition(value=float("nan"))]},
    {"all": [condition(value=Decimal("NaN"))]},
    {"all": [condition(value=Decimal("1E+999"))]},
    {"all": [condition(value=10**39 + 1)]},
    {"all": [condition(value=[])]},
    {"all": [condition(value={})]},
    {"all": [condition(value="\ud800")]},
    {"all": [condition(value="x" * 1025)]},
    {"all": [condition(op="in", value=[])]},
    {"all": [condition(op="in", value="ab")]},
    {"all": [condition(op="in", value=[None])]},
    {"all": [condition(op="in", value=[["a"]])]},
    {"all": [condition(op="in", value=[1.5])]},
    {"all": [condition(op="in", value=["a"] * (MAX_FILTER_VALUES + 1))]},
    {"all": [condition(op="lt", value=True)]},
    {"all": [condition(op="lt", value=None)]},
    {"all": [condition(op="lte", value=["a"])]},
    {"all": [condition(op="gt", value={})]},
    {"all": [condition(op="gte", value=0.5)]},
    {"all": [condition(op="prefix", value="")]},
    {"all": [condition(op="prefix", value=1)]},
    {"all": [condition(op="prefix", value=["a"])]},
    {"all": [condition(op="exists", value="true")]},
    {"all": [condition(op="exists", value=1)]},
    {"all": [condition(op="exists", value=None)]},
    {"all": [condition()] * (MAX_FILTER_CONDITIONS + 1)},
    [],
    None,
    "x",
]


@pytest.mark.parametrize("content", REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_is_no_filter(content: object) -> None:
    with pytest.raises(ValidationError):
        Filter.model_validate(content)


def test_the_bounds_themselves_are_taken() -> None:
    Filter.model_validate({"all": [condition()] * MAX_FILTER_CONDITIONS})
    one("f", "in", [str(n) for n in range(MAX_FILTER_VALUES)])
    one("x" * 255, "eq", "x" * 1024)


SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.booleans(),
    st.integers(-(10**37), 10**37),
    st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-9999, max_value=9999),
)


def op_of(op: str, value: object, fields: dict[str, Value]) -> bool:
    return matches(one("f", op, value), fields)


@given(SCALARS, st.one_of(SCALARS, st.none()))
def test_ne_is_the_opposite_of_eq_and_in_is_eq_of_any(value: Any, field: Any) -> None:
    fields: dict[str, Value] = {} if field is None else {"f": field}
    assert op_of("ne", value, fields) is not op_of("eq", value, fields)
    assert op_of("in", [value, "other"], fields) is (
        op_of("eq", value, fields) or op_of("eq", "other", fields)
    )
    there, absent = (op_of("exists", value=wanted, fields=fields) for wanted in (True, False))
    assert there is not absent


@given(st.one_of(st.tuples(SCALARS, SCALARS)))
def test_an_order_is_total_within_a_type_and_absent_across_types(pair: tuple[Any, Any]) -> None:
    value, field = pair
    if isinstance(value, bool):
        return
    fields: dict[str, Value] = {"f": field}
    lt, lte, gt, gte = (op_of(op, value, fields) for op in ("lt", "lte", "gt", "gte"))
    eq = op_of("eq", value, fields)
    ordered = isinstance(field, str) == isinstance(value, str) and not isinstance(field, bool)
    assert (lt, eq, gt).count(True) == (1 if ordered else 0)
    assert (lte, gte) == (lt or eq, gt or eq)
    if ordered and isinstance(field, str) and isinstance(value, str):
        assert lt is (field.encode() < value.encode())


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["eq", "ne"]), SCALARS),
            st.tuples(st.just("in"), st.lists(SCALARS, min_size=1, max_size=4)),
            st.tuples(st.just("exists"), st.booleans()),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_filter_survives_being_stored(conditions: list[tuple[str, Any]]) -> None:
    made = Filter.model_validate(
        {"all": [{"field": "f", "op": op, "value": value} for op, value in conditions]}
    )
    again = Filter.from_json(made.to_json())
    assert again.to_json() == made.to_json()
    for kept, (_, value) in zip(again.all, conditions, strict=True):
        if isinstance(value, Decimal):
            assert kept.value == number(value)
            assert not isinstance(kept.value, float)


def test_numbers_stay_exact_on_the_way_through_json() -> None:
    text = '{"all": [{"field": "f", "op": "eq", "value": 12345678901234567890.123456789}]}'
    kept = Filter.from_json(text)
    assert json.loads(kept.to_json(), parse_float=str)["all"][0]["value"] == (
        "12345678901234567890.123456789"
    )
    assert matches(kept, {"f": Decimal("12345678901234567890.123456789")})
    assert not matches(kept, {"f": Decimal("12345678901234567890.123456788")})
