"""Add to a number, and take time for it, as an operation does that calculates for long."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from fairlane.operations import EXACT, Change, Fail, Fields, Number, Outcome, Parameters, operation


class SlowNumber(Parameters):
    add: Number
    ms: Annotated[int, Field(ge=0, le=1000)] = 10
    """For each record: a slot changes a hundred records a second at the most."""


@operation("slow_number", SlowNumber, writes=lambda _: frozenset({"n"}))
def slow_number(record: Fields, parameters: SlowNumber) -> Outcome:
    """Add to the field ``n`` of every record, slowly: ``{"add": 1, "ms": 10}``."""
    before = record.get("n")
    if isinstance(before, bool) or not isinstance(before, int | Decimal):
        return Fail("n is not a number")
    time.sleep(parameters.ms / 1000)
    return Change({"n": EXACT.add(before, parameters.add)})
