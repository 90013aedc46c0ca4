"""The pace of bulk work: its settings, what may slow it, and what the small lane says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class PacedBy(StrEnum):
    """What slows a bulk job down."""

    SMALL_LANE = "small_lane"
    """Small jobs wait longer for their start than in quiet times."""
    THROTTLING = "throttling"
    """The database refuses writes for lack of capacity."""
    CONFLICTS = "conflicts"
    """Other transactions are on the same items."""
    LATENCY = "latency"
    """Commits take longer than in quiet times."""
    RATE_LIMIT = "rate_limit"
    """An operator's limit of records or write units a second."""


class PaceSettings(BaseModel):
    """How bulk work gets out of the way of small jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    on: bool = True
    """False: bulk work takes what it can get."""
    target: float = Field(default=2.0, gt=1, le=100)
    """How many times longer than in quiet times a small job may wait for its start, and a commit
    may take, before bulk work slows down."""
    floor_percent: int = Field(default=5, ge=1, le=100)
    """The least pace, in percent of the full one: bulk work never stops entirely."""


@dataclass(frozen=True)
class SmallDwell:
    """What the processes of the small lane measured of late."""

    ms: int
    """The median time from being admitted to the start."""
    quiet_ms: int
    """The same in the quietest stretch of the last minutes."""
