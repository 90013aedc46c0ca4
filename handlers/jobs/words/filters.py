"""The filter language of queries, and its only evaluator.

``{"all": [{"field": "price", "op": "gte", "value": 10}, …]}``: a record is selected when every
condition holds. A search index only finds candidates; ``matches`` decides.

Values are text, exact numbers (compared by value: 1 is 1.0) and booleans, and values of different
types are never equal and have no order. Text is ordered by its UTF-8 bytes. A field that is absent
or null, or that holds a list or map, satisfies no condition but ``ne``, the exact opposite of
``eq``, and, if it is a list or map, ``exists``.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Tag,
    model_validator,
)
from pydantic.types import Discriminator

from .exact_json import exact_json, exact_loads
from .limits import MAX_FILTER_CONDITIONS, MAX_FILTER_TEXT_BYTES, MAX_FILTER_VALUES
from .record_schema import RecordSchema
from .stored_values import BadValue, number
from .text_rules import text_problem, text_schema

if TYPE_CHECKING:
    from .operation import Fields
    from .writes import Value

MAX_FIELD_BYTES: Final = 255
RESERVED: Final = RecordSchema().reserved
"""Fairlane's own attributes, which no filter may name."""

Scalar = str | int | Decimal | bool
Ordered = str | int | Decimal


def _field(name: str) -> str:
    if problem := text_problem(name, MAX_FIELD_BYTES):
        raise ValueError(problem)
    if name in RESERVED:
        raise ValueError(
            f"the field {name!r} is reserved; a query selects by the record's other fields"
        )
    return name


def _scalar(value: object) -> object:
    """A text, boolean or exact number in stored form. Raises ValueError, also for a float."""
    match value:
        case bool():
            return value
        case str():
            return _text(value)
        case int() | Decimal():
            try:
                return number(value)
            except BadValue as error:
                raise ValueError(str(error)) from error
    raise ValueError(f"must be text, a number or a boolean, not {_kind(value)}")


def _text(value: str) -> str:
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise ValueError("must not hold half of a surrogate pair") from error
    if size > MAX_FILTER_TEXT_BYTES:
        raise ValueError(f"is {size} bytes as UTF-8, at most {MAX_FILTER_TEXT_BYTES} are allowed")
    return value


def _ordered(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError(f"must be text or a number, not {_kind(value)}, which has no order")  # noqa: TRY004  pydantic turns only ValueError into a field's error
    return _scalar(value)


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", float: "an inexact number", list: "a list", dict: "a map"}
    return "null" if value is None else kinds.get(type(value), f"a {type(value).__name__}")


FieldName = Annotated[str, Field(strict=True), AfterValidator(_field), text_schema(MAX_FIELD_BYTES)]

# Any: pydantic must not convert what the validator let through.
AnyScalar = Annotated[Any, BeforeValidator(_scalar)]
AnyOrdered = Annotated[Any, BeforeValidator(_ordered)]


class _Condition(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    field: FieldName


class Equality(_Condition):
    op: Literal["eq", "ne"]
    value: AnyScalar


class Membership(_Condition):
    op: Literal["in"]
    value: Annotated[list[AnyScalar], Field(min_length=1, max_length=MAX_FILTER_VALUES)]


class Comparison(_Condition):
    op: Literal["lt", "lte", "gt", "gte"]
    value: AnyOrdered


class Prefix(_Condition):
    op: Literal["prefix"]
    value: Annotated[str, Field(strict=True, min_length=1), AfterValidator(_text)]


class Existence(_Condition):
    op: Literal["exists"]
    value: Annotated[bool, Field(strict=True)]
    """False: the field must be absent."""


_KINDS: Final[Mapping[str, str]] = {
    "eq": "<equality>",
    "ne": "<equality>",
    "in": "<membership>",
    "lt": "<comparison>",
    "lte": "<comparison>",
    "gt": "<comparison>",
    "gte": "<comparison>",
    "prefix": "<prefix>",
    "exists": "<existence>",
}
TAGS: Final = frozenset(_KINDS.values())
"""Parts that pydantic adds to the path of an error, though no client wrote them."""


def _kind_of(condition: object) -> str | None:
    op = condition.get("op") if isinstance(condition, Mapping) else getattr(condition, "op", None)
    return _KINDS.get(op) if isinstance(op, str) else None


Condition = Annotated[
    Annotated[Equality, Tag("<equality>")]
    | Annotated[Membership, Tag("<membership>")]
    | Annotated[Comparison, Tag("<comparison>")]
    | Annotated[Prefix, Tag("<prefix>")]
    | Annotated[Existence, Tag("<existence>")],
    Discriminator(
        _kind_of,
        custom_error_type="no_such_op",
        custom_error_message=f"is not a condition; op must be one of {', '.join(_KINDS)}",
    ),
]
AnyCondition = Equality | Membership | Comparison | Prefix | Existence


class Filter(BaseModel):
    """A record matches when every condition holds. A filter without conditions is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    all: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=MAX_FILTER_CONDITIONS)]

    @model_validator(mode="before")
    @classmethod
    def _not_empty(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and not value.get("all", True):
            raise ValueError("has no condition; name at least one in 'all'")
        return value

    @property
    def fields(self) -> frozenset[str]:
        """The fields that decide whether a record is selected."""
        return frozenset(condition.field for condition in self.all)

    def to_json(self) -> str:
        """Exact JSON, which ``from_json`` reads back."""
        return exact_json(
            {"all": [{"field": c.field, "op": c.op, "value": c.value} for c in self.all]}
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises ValueError (pydantic's ValidationError is one)."""
        return cls.model_validate(exact_loads(text))


def not_searchable(fields: AbstractSet[str], searchable: AbstractSet[str] | None) -> str | None:
    """Why a query may not name these fields; None when it may. searchable: the fields that queries
    may name; None: all."""
    others = sorted(fields - searchable) if searchable is not None else []
    if searchable is None or not others:
        return None
    known = ", ".join(sorted(searchable)) or "none"
    return (
        f"the field {others[0]!r} is not searchable; searchable are: {known} (the deployment's "
        "setting effects.search_fields declares them)"
    )


def matches(filter_: Filter, fields: Fields) -> bool:
    """Whether a record with these fields is selected."""
    return all(_holds(condition, fields.get(condition.field)) for condition in filter_.all)


def _holds(condition: AnyCondition, value: Value) -> bool:
    match condition:
        case Equality(op="eq"):
            return _equal(value, condition.value)
        case Equality():
            return not _equal(value, condition.value)
        case Membership():
            return any(_equal(value, one) for one in condition.value)
        case Prefix():
            return isinstance(value, str) and value.startswith(condition.value)
        case Existence():
            return (value is not None) is condition.value
        case Comparison():
            return _compared(condition.op, value, condition.value)


def _equal(value: Value, other: Scalar) -> bool:
    # In Python True == 1, in a record they differ.
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    return isinstance(value, int | Decimal) and value == other


def _compared(op: str, value: Value, bound: Ordered) -> bool:
    order = _order(value, bound)
    if order is None:
        return False
    match op:
        case "lt":
            return order < 0
        case "lte":
            return order <= 0
        case "gt":
            return order > 0
        case _:
            return order >= 0


def _order(value: Value, bound: Ordered) -> int | None:
    """-1, 0 or 1; None when the two have no order."""
    if isinstance(value, str) and isinstance(bound, str):
        return (value > bound) - (value < bound)  # code points and UTF-8 bytes sort alike
    numbers = (
        isinstance(value, int | Decimal)
        and not isinstance(value, bool)
        and isinstance(bound, int | Decimal)
    )
    if not numbers:
        return None
    return (value > bound) - (value < bound)  # type: ignore[operator]  # both are numbers
