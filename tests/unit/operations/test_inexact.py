"""No parameter of an operation is declared so that it could hold a float."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Required,
    TypeVar,
    Union,
)

import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    InstanceOf,
    Json,
    PlainSerializer,
    PlainValidator,
    RootModel,
    SkipValidation,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    computed_field,
    create_model,
)
from typing_extensions import TypeAliasType, TypedDict

from fairlane.operations import FieldName, FieldValue, Number, Parameters, Table
from handlers.operations.inexact import check_exact

T = TypeVar("T")

Ratio = TypeAliasType("Ratio", float)
Ratios = TypeAliasType("Ratios", "list[Ratio] | None")
Percent = NewType("Percent", float)


class Inner(BaseModel):
    name: str = ""
    share: float = 0


class Deep(BaseModel):
    inner: dict[str, Inner]


class Tree(BaseModel):
    children: list[Tree] = []
    weight: float | None = None


class Box(BaseModel, Generic[T]):
    content: T


class Rows(RootModel[list[float]]):
    pass


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float] = Field(init=False)


@dataclass
class Point:
    x: int
    y: float


class Pair(NamedTuple):
    left: int
    right: float


class Bounds(TypedDict, total=False):
    low: Required[Decimal]
    high: float


class Rate(enum.Enum):
    LOW = Decimal("0.5")
    HIGH = 1.5


class FloatRate(float, enum.Enum):
    LOW = 0.5


class Money(float):
    pass


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    weight: float


REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "float": (float, "p"),
    "strict": (StrictFloat, "p"),
    "with a bound": (Annotated[float, Field(gt=0)], "p"),
    "with a condition": (FiniteFloat, "p"),
    "Optional": (Optional[float], "p"),  # noqa: UP045  as it may be written
    "Union": (Union[int, float], "p"),  # noqa: UP007  as it may be written
    "union": (int | float | None, "p"),
    "list": (list[float], "p"),
    "list inside a list": (list[list[float]], "p"),
    "set": (frozenset[float], "p"),
    "pair": (tuple[int, float], "p"),
    "tuple of any length": (tuple[float, ...], "p"),
    "values": (dict[str, float], "p"),
    "keys": (dict[float, str], "p"),
    "alias": (Ratio, "p"),
    "alias of an alias": (dict[str, Ratios], "p"),
    "new type": (Percent, "p"),
    "type parameter": (Box[float], "p.content"),
    "nested": (Inner, "p.share"),
    "nested twice": (list[Deep], "p.inner.share"),
    "nested in itself": (Tree, "p.weight"),
    "root": (Rows, "p"),
    "extra": (Open, "p"),
    "dataclass": (Point, "p.y"),
    "named tuple": (Pair, "p"),
    "typed dict": (Bounds, "p.high"),
    "union by a tag": (Annotated[Cat | Dog, Field(discriminator="kind")], "p.weight"),
    "union by a function": (
        Annotated[
            Annotated[int, Tag("type")] | Annotated[float, Tag("fields")], Discriminator(type)
        ],
        "p",
    ),
    "JSON text": (Json[float], "p"),
    "literal": (Literal[1, 1.5], "p"),
    "enum": (Rate, "p"),
    "enum that is a float": (FloatRate, "p"),
    "instance": (InstanceOf[float], "p"),
    "subclass": (InstanceOf[Money], "p"),
    "converted before": (Annotated[float, BeforeValidator(str)], "p"),
    "own validator": (Annotated[float, PlainValidator(lambda value: value)], "p"),
    "not validated": (SkipValidation[float], "p"),
    "two floats": (complex, "p"),
}


@pytest.mark.parametrize(("declared", "field"), REFUSED.values(), ids=REFUSED)
def test_a_float_is_refused_wherever_it_is_declared(declared: Any, field: str) -> None:
    parameters = create_model("P", __base__=Parameters, a=(Number, 0), p=(declared, ...))
    with pytest.raises(TypeError) as refusal:
        check_exact("raise_price", parameters)
    assert str(refusal.value).startswith(f"operation 'raise_price': the parameter {field!r} is ")
    assert "use Number of fairlane.operations, Decimal or int instead" in str(refusal.value)


@pytest.mark.parametrize("default", [2.5, [1, 2.5], {"a": (2.5,)}, {2.5: 1}, {2.5}])
def test_so_is_a_default_which_pydantic_would_take_as_it_is(default: Any) -> None:
    """A number written without quotes; the type alone says nothing of it."""
    parameters = create_model("P", __base__=Parameters, p=(FieldValue, default))
    with pytest.raises(TypeError, match=r"the parameter 'p' has the default .*2\.5.*, a float"):
        check_exact("raise_price", parameters)


class Fine(BaseModel):
    again: list[Fine] = []
    number: Decimal = Decimal("0.5")


class Named(BaseModel):
    """Fields with the names of what the walk looks for, and of what it leaves out."""

    type: Literal["float"] = "float"
    metadata: int = 0
    default: dict[str, str] = {"type": "float"}

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def half(self) -> float:
        return self.metadata / 2


ALLOWED: Final[dict[str, Any]] = {
    "Decimal": Decimal,
    "int": int,
    "bool": bool,
    "str": str,
    "Number": Number | None,
    "field": dict[FieldName, FieldValue],
    "strict": StrictInt | StrictStr | StrictBool,
    "anything": Any,
    "table": Table | None,
    "literal": Literal["a", 1, True, "float"] | None,
    "enum": enum.Enum("Size", {"SMALL": "s", "LARGE": "l"}),
    "nested in itself": Fine,
    "by names": Named,
    "union by a tag": Annotated[
        Annotated[Cat, Tag("float")] | Annotated[Fine, Tag("metadata")],
        Discriminator(lambda _: "float"),
    ],
    "bound": Annotated[Decimal, Field(gt=0.5)],
    "shown as": Annotated[Decimal, PlainSerializer(float, return_type=float)],
    "sent as": Annotated[Decimal, BeforeValidator(str, json_schema_input_type=float)],
    "described as": Annotated[Decimal, Field(json_schema_extra={"type": "float"})],
}


@pytest.mark.parametrize("declared", ALLOWED.values(), ids=ALLOWED)
def test_what_keeps_numbers_exact_is_allowed(declared: Any) -> None:
    check_exact("fine", create_model("P", __base__=Parameters, p=(declared, ...)))
