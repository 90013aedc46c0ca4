"""What the operations of this folder share; it declares none."""

from __future__ import annotations

from decimal import Decimal

from fairlane.operations import round_half_even


def to_cents(price: Decimal) -> Decimal:
    return round_half_even(price, 2)
