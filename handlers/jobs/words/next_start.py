"""When a waiting job should start, from how its tenant's jobs started of late: a pure function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .timing import SECOND

LATELY: Final = 3600 * SECOND
"""Starts of longer ago (ms) say nothing about the lane as it is now."""
LEAST: Final = 2
"""Starts that make a rate."""


def next_start(now: int, starts: Sequence[int], ahead: int) -> int | None:
    """The time (epoch ms) at which a job with so many of its tenant's jobs before it should start;
    None when too little is known. starts: of the tenant's jobs in that lane, in any order.

    The starts are taken to go on at the pace at which they came, or at a slower one when the next
    start is late. The answer is never in the past.
    """
    known = sorted(at for at in starts if now - LATELY <= at <= now)
    if len(known) < LEAST:
        return None
    between = (known[-1] - known[0]) / (len(known) - 1)
    every = max(between, (now - known[0]) / len(known))
    return max(now, round(known[-1] + every * (ahead + 1)))
