"""Change prices by some percent."""

from __future__ import annotations

from decimal import Decimal

from fairlane.operations import (
    EXACT,
    SEARCH_INDEX,
    WEBHOOK,
    Change,
    Fail,
    Fields,
    Number,
    Outcome,
    Parameters,
    Skip,
    StrictStr,
    operation,
    round_half_even,
)


class ChangePrice(Parameters):
    percent: Number
    campaign: StrictStr
    """Each campaign changes a product's price once, however often its job is sent."""


@operation(
    "change_price",
    ChangePrice,
    writes=lambda _: frozenset({"price", "campaign"}),
    sinks=(SEARCH_INDEX, WEBHOOK),
)
def change_price(record: Fields, parameters: ChangePrice) -> Outcome:
    """Change the price, to the cent: ``{"percent": -10, "campaign": "spring"}``."""
    price = record.get("price")
    if isinstance(price, bool) or not isinstance(price, int | Decimal):
        return Fail("the price is not a number")
    if record.get("campaign") == parameters.campaign:
        return Skip("the campaign has changed this price already")
    changed = EXACT.divide(EXACT.multiply(price, EXACT.add(100, parameters.percent)), 100)
    if changed < 0:
        return Fail(f"{parameters.percent} percent would make the price negative")
    return Change({"price": round_half_even(changed, 2), "campaign": parameters.campaign})
