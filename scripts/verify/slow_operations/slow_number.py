"""Add to a number, and take time for it, as an operation does that calculates for long."""

from __future__ import annotations

import time
from decimal import Decimal

from fairlane.operations import EXACT, Change, Fail, Fields, Number, Outcome, Parameters, operation

SECONDS = 0.01
"""For each record: a slot changes a hundred records a second at the most."""


class SlowNumber(Parameters):
    add: Number


@operation("slow_number", SlowNumber, writes=lambda _: frozenset({"n"}))
def slow_number(record: Fields, parameters: SlowNumber) -> Outcome:
    """Add to the field ``n`` of every record, slowly: ``{"add": 1}``."""
    before = record.get("n")
    if isinstance(before, bool) or not isinstance(before, int | Decimal):
        return Fail("n is not a number")
    time.sleep(SECONDS)
    return Change({"n": EXACT.add(before, parameters.add)})
