"""A relative import, a requirement of its own, and a number that stays exact."""

from __future__ import annotations

from decimal import Decimal

from fairlane.operations import (
    EXACT,
    Change,
    Fail,
    Fields,
    Number,
    Outcome,
    Parameters,
    operation,
)

from .rounding import to_cents


class RaisePrice(Parameters):
    percent: Number


@operation("raise_price", RaisePrice, writes=lambda _: frozenset({"price"}))
def raise_price(record: Fields, parameters: RaisePrice) -> Outcome:
    """Raise the price by some percent, to the cent: ``{"percent": 2.5}``."""
    price = record.get("price")
    if isinstance(price, bool) or not isinstance(price, int | Decimal):
        return Fail("the price is not a number")
    raised = EXACT.multiply(price, EXACT.add(100, parameters.percent))
    return Change({"price": to_cents(EXACT.divide(raised, 100))})
