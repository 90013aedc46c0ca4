"""The events of a job's life, and the names of their listeners."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .errors import FairlaneError

EVENT_BUS: Final = "event_bus"
"""The deployment's listener, which receives the events of every job."""
ADDRESS: Final = "address"
"""The listener that calls the address named in a job's request. Only recovery has it, so that a
tenant's slow server delays no worker and no request."""


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
    """The job's fence when the event happened. With ``what`` it identifies the event within the
    job; an event with a higher fence happened later or at the same time."""
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
