"""Made-up invoices for a local stack, the file of their ids, and one of customers.

``python make_invoices.py 300000`` writes invoices.jsonl, ids.csv and customers.csv. Every hundredth
invoice has a decimal comma, another one no currency, and every thousandth no amount.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

COMMA_EVERY = 100
NOTHING_EVERY = 1000
CUSTOMERS = 5000


def total(number: int) -> str:
    """The text that the old program wrote into the invoice of this number, from 1."""
    if number % NOTHING_EVERY == 0:
        return "unknown"
    if number % COMMA_EVERY == 0:
        return f"{number},50 EUR"
    if number % COMMA_EVERY == COMMA_EVERY // 2:
        return f"{number}.25"
    return f"{number}.25 USD"


def write(folder: Path, count: int) -> None:
    invoices, ids = folder / "invoices.jsonl", folder / "ids.csv"
    with invoices.open("w", encoding="utf-8") as records, ids.open("w", encoding="utf-8") as lines:
        lines.write("invoice\n")
        for each in range(1, count + 1):
            id_ = f"inv-{each:07}"
            customer = f"c-{each % CUSTOMERS:04}"
            record = {"tenant": "billing", "id": id_, "customer": customer, "total": total(each)}
            records.write(json.dumps(record) + "\n")
            lines.write(id_ + "\n")
    with (folder / "customers.csv").open("w", encoding="utf-8") as customers:
        customers.write("customer,currency,name\n")
        for each in range(CUSTOMERS):
            customers.write(f"c-{each:04},EUR,Customer {each:04} and sons\n")


if __name__ == "__main__":
    write(Path(), int(sys.argv[1]))
