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
    Table,
    Value,
    number,
    operation,
)

TOTAL = re.compile(r"(?P<amount>-?\d+(?:[.,]\d+)?) ?(?P<currency>[A-Z]{3})?")


class SplitTotal(Parameters):
    decimal_comma: StrictBool = False
    """Whether ``12,50`` is twelve and a half."""
    customers: Table | None = None
    """The ``currency`` of each customer, for totals that name none."""


@operation("split_total", SplitTotal, writes=lambda _: frozenset({"amount", "currency", "total"}))
def split_total(record: Fields, parameters: SplitTotal) -> Outcome:
    """Replace ``total`` by ``amount`` and ``currency``; an invoice that has them is skipped."""
    if "amount" in record:
        return Skip("split already")
    total = record.get("total")
    found = TOTAL.fullmatch(total.strip()) if isinstance(total, str) else None
    currency = found and (found["currency"] or currency_of(record, parameters))
    if found is None or currency is None:
        return Fail(f"no amount and currency: {total!r}")
    amount = found["amount"]
    if "," in amount and not parameters.decimal_comma:
        return Fail(f"a comma may be a decimal point or not: {total!r}")
    try:
        stored = number(Decimal(amount.replace(",", ".")))
    except BadValue as error:
        return Fail(str(error))
    return Change({"amount": stored, "currency": currency, "total": None})


def currency_of(record: Fields, parameters: SplitTotal) -> Value:
    """That of the invoice's customer, if it is known."""
    known = {} if parameters.customers is None else parameters.customers
    return known.get(str(record.get("customer")), {}).get("currency")
