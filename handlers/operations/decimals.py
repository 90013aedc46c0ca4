"""Decimal arithmetic that never rounds unless asked to."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Final

MAX_PLACES: Final = 130
"""Decimals of the smallest number a record can hold."""

# Room for a sum of products of storable numbers: their digits span less than 700 places. Were
# that ever wrong, Inexact raises instead of losing a digit.
EXACT: Final = Context(prec=2000, traps=[Inexact, InvalidOperation, Overflow])
_ROUNDING: Final = Context(prec=2000, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, Overflow])


def round_half_even(number: Decimal, places: int) -> Decimal:
    """The nearest number with at most ``places`` decimals; a tie goes to the even digit."""
    return _ROUNDING.quantize(number, Decimal(1).scaleb(-places))


def places_of(number: Decimal) -> int:
    """How many decimals it takes to write the finite number."""
    exponent = EXACT.normalize(number).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
