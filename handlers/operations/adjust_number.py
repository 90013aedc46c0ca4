"""Calculate with a number field."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from ..jobs.words.operation import Change, Fail, Skip
from ..jobs.words.stored_values import BadValue, number
from . import decimals
from .parameters import FieldName, Number, Parameters
from .registry import operation

if TYPE_CHECKING:
    from ..jobs.words.operation import Fields, Outcome


class AdjustNumber(Parameters):
    field: FieldName
    multiply: Number | None = None
    add: Number | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    places: int | None = Field(default=None, ge=0, le=decimals.MAX_PLACES, strict=True)
    """Decimals to round to."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if all(part is None for part in (self.multiply, self.add, self.minimum, self.maximum)):
            raise ValueError("give at least one of multiply, add, minimum, maximum")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is greater than maximum {self.maximum}")
        for name, bound in (("minimum", self.minimum), ("maximum", self.maximum)):
            if bound is None or self.places is None:
                continue
            # Otherwise rounding would carry a clamped number over its bound.
            if decimals.places_of(bound) > self.places:
                raise ValueError(f"{name} {bound} has more decimals than places = {self.places}")
        return self


@operation("adjust_number", AdjustNumber, writes=lambda parameters: frozenset({parameters.field}))
def adjust_number(record: Fields, parameters: AdjustNumber) -> Outcome:
    """Calculate with one number of every record, exactly: ``{"field": "price", "multiply": 1.1}``.

    In this order: times ``multiply``, plus ``add``, up to ``minimum`` and down to ``maximum``,
    rounded to ``places`` decimals (a tie goes to the even digit). A record fails when the field is
    missing or not a number, or when the result has more than 38 digits or is too large or too
    small to store; without ``places`` nothing is ever rounded. A record whose number stays as it
    is is skipped.
    """
    if parameters.field not in record:
        return Fail(f"field {parameters.field!r} is missing")
    before = record[parameters.field]
    if isinstance(before, bool) or not isinstance(before, int | Decimal):
        return Fail(f"field {parameters.field!r} is not a number")
    try:
        after = number(adjusted(Decimal(number(before)), parameters))
    except BadValue as error:
        return Fail(f"field {parameters.field!r}: {error}")
    if after == before:
        return Skip(f"field {parameters.field!r} stays as it is")
    return Change({parameters.field: after})


def adjusted(value: Decimal, parameters: AdjustNumber) -> Decimal:
    """The result for a storable number; exact but for ``places``. It may not be storable."""
    if parameters.multiply is not None:
        value = decimals.EXACT.multiply(value, parameters.multiply)
    if parameters.add is not None:
        value = decimals.EXACT.add(value, parameters.add)
    if parameters.minimum is not None:
        value = max(value, parameters.minimum)
    if parameters.maximum is not None:
        value = min(value, parameters.maximum)
    if parameters.places is not None:
        value = decimals.round_half_even(value, parameters.places)
    return value
