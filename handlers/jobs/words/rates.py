"""Limits of the rate at which bulk work may change records, set while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_RATE: Final = 10_000_000


class Unit(StrEnum):
    """What is counted for a second."""

    RECORDS = "records"
    WRITE_UNITS = "write_units"
    """DynamoDB's, of the records: two for each KB of a record, as in every transaction."""


@dataclass(frozen=True)
class RateLimit:
    """So many of a unit a second, for everything of a scope together."""

    scope: str
    """``tenant#…``, ``operation#…`` or ``lane#…``."""
    unit: Unit
    rate: int
