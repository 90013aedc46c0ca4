"""``"12.50 EUR"`` becomes an amount and a currency."""

from __future__ import annotations

import re
from decimal import Decimal

from fairlane.operations import (
    BadValue,
    Change,
    Fail,
    Fields,
    Outcome,
    Parameters,
    Skip,
    StrictBool,
    number,
    operation,
)

TOTAL = re.compile(r"(?P<amount>-?\d+(?:[.,]\d+)?) ?(?P<currency>[A-Z]{3})")


class SplitTotal(Parameters):
    decimal_comma: StrictBool = False
    """Whether ``12,50`` is twelve and a half."""


@operation("split_total", SplitTotal, writes=lambda _: frozenset({"amount", "currency", "total"}))
def split_total(record: Fields, parameters: SplitTotal) -> Outcome:
    """Replace ``total`` by ``amount`` and ``currency``; an invoice that has them is skipped."""
    if "amount" in record:
        return Skip("split already")
    total = record.get("total")
    found = TOTAL.fullmatch(total.strip()) if isinstance(total, str) else None
    if found is None:
        return Fail(f"no amount and currency: {total!r}")
    amount = found["amount"]
    if "," in amount and not parameters.decimal_comma:
        return Fail(f"a comma may be a decimal point or not: {total!r}")
    try:
        stored = number(Decimal(amount.replace(",", ".")))
    except BadValue as error:
        return Fail(str(error))
    return Change({"amount": stored, "currency": found["currency"], "total": None})
