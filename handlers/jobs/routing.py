"""Which lane a job runs in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Lane

if TYPE_CHECKING:
    from .limits import Limits


def lane_for(known_items: int | None, limits: Limits) -> Lane:
    """known_items: None when the number is not known before walking."""
    if known_items is not None and known_items <= limits.small_max_items:
        return Lane.SMALL
    return Lane.BULK
