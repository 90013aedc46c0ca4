"""Made-up invoices for a local stack, and the file of their ids.

``python make_invoices.py 300000`` writes invoices.jsonl and ids.csv. Every hundredth invoice has a
decimal comma, and every thousandth no currency.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

COMMA_EVERY = 100
NOTHING_EVERY = 1000


def total(number: int) -> str:
    """The text that the old program wrote into the invoice of this number, from 1."""
    if number % NOTHING_EVERY == 0:
        return "unknown"
    if number % COMMA_EVERY == 0:
        return f"{number},50 EUR"
    return f"{number}.25 USD"


def write(folder: Path, count: int) -> None:
    invoices, ids = folder / "invoices.jsonl", folder / "ids.csv"
    with invoices.open("w", encoding="utf-8") as records, ids.open("w", encoding="utf-8") as lines:
        lines.write("invoice\n")
        for each in range(1, count + 1):
            id_ = f"inv-{each:07}"
            record = {"tenant": "billing", "id": id_, "total": total(each)}
            records.write(json.dumps(record) + "\n")
            lines.write(id_ + "\n")


if __name__ == "__main__":
    write(Path(), int(sys.argv[1]))
