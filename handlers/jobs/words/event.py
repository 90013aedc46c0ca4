"""The events of a job's life, and who can listen to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .errors import FairlaneError

EVENT_BUS: Final = "event_bus"
"""The deployment's listener: hears of every job."""
ADDRESS: Final = "address"
"""Calls the address that a job's own request named. Only recovery has it: how long a tenant's
server takes must be nobody else's time."""


class EventType(StrEnum):
    CREATED = "created"
    """Queued, or held for want of a slot."""
    ADMITTED = "admitted"
    """A held job got its slot."""
    STARTED = "started"
    """The first attempt began."""
    ENDED = "ended"


class NotTaken(FairlaneError):
    """The listener refused an event for good."""


@dataclass(frozen=True)
class JobEvent:
    """One event for one listener."""

    job_id: str
    tenant: str
    lane: str
    fence: int
    """Of the job when it happened; with ``what`` it tells this event from all others of the job,
    and events of a job that have a higher one came later or with it."""
    what: EventType
    listener: str
    to: str | None
    """The address, if the listener needs one."""
    detail: str
    """The event as JSON."""
    tries: int = 0

    @property
    def key(self) -> str:
        """The same for every try."""
        return f"{self.job_id}:{self.what}:{self.fence}"
