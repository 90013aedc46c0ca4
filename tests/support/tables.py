"""An operation with a lookup table, as a team's own would be, and a table of a size worth one."""

from __future__ import annotations

import json
from typing import Final

from handlers.jobs.words.operation import Change, Fail, Fields, Operation, Outcome
from handlers.jobs.words.table import Table
from handlers.operations.parameters import Parameters

MANY: Final = 2000
PARAMS_BYTES: Final = 64 * 1024


class Priced(Parameters):
    prices: Table


def apply(record: Fields, parameters: Priced) -> Outcome:
    row = parameters.prices.get(str(record.get("sku")))
    return Fail("no such sku") if row is None else Change({"price": row["price"]})


PRICED: Final = Operation("priced", Priced, apply, lambda _: frozenset({"price"}))
"""The price of a record is that of its ``sku`` in the table."""


def price_list(more: int = 0) -> bytes:
    """JSON Lines, longer than parameters may be. more: is added to each price."""
    rows = ({"sku": f"sku-{n:05}", "price": n + more, "note": "x" * 20} for n in range(MANY))
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert len(content) > PARAMS_BYTES
    return content
