"""Every error, by what a caller may conclude from it.

An exception's docstring is its message when none is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .writes import Item


class FairlaneError(Exception):
    """Something in Fairlane went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


# --- what a store, queue or payload call may raise -------------------------------------------


class Transient(FairlaneError):
    """The dependency refused or could not be reached; nothing was written. Try again later."""

    def __init__(self, message: str | None = None, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms
        """The wait the dependency asked for (ms); None when it named none."""


class Denied(Transient):
    """The deployment lacks a permission that a call needs; nothing was written. It is waited for
    like a dependency that is down: an operator can grant it, and the job goes on."""


class NotAsked(Transient):
    """The dependency failed a moment ago and was not called again yet."""


class Crashed(Transient):
    """Our own code broke in the middle of an attempt."""


def cause_of(error: Transient) -> str:
    """For a client: why an attempt ended, without the words of other systems. They are logged."""
    match error:
        case Crashed():
            return str(error)
        case Denied():
            return "the deployment lacks a permission that the job needs"
        case _:
            return "a service that the job needs refused a call or did not answer"


class OutcomeUnknown(FairlaneError):
    """The reply was lost: the write may or may not have happened. Read before deciding."""


class Why(StrEnum):
    """Why one write of a transaction was refused."""

    CONDITION = "condition"
    """Its condition did not hold."""
    CONFLICT = "conflict"
    """Another transaction was on the same item; retry as it is."""
    THROTTLED = "throttled"
    """Capacity; retry as it is."""
    INVALID = "invalid"
    """The item can never be written like this (too large, bad value)."""


@dataclass(frozen=True)
class Reason:
    why: Why
    item: Item | None = None
    """The item as the condition saw it; None when it does not exist or was not returned."""
    message: str = ""


class Refused(FairlaneError):
    """The transaction was refused as a whole; nothing was written."""

    def __init__(self, reasons: Sequence[Reason | None]) -> None:
        self.reasons = tuple(reasons)
        """One entry per write, by position; None for a write that had no objection."""
        named = ", ".join(f"{i}: {r.why}" for i, r in enumerate(self.reasons) if r)
        super().__init__(f"transaction refused ({named or 'no reason given'})")

    def reason(self, position: int) -> Reason | None:
        return self.reasons[position] if position < len(self.reasons) else None

    @property
    def only_contention(self) -> bool:
        """True when every objection goes away by itself: conflict or throttling."""
        whys = {r.why for r in self.reasons if r}
        return bool(whys) and whys <= {Why.CONFLICT, Why.THROTTLED}


class PayloadGone(FairlaneError):
    """The stored id list of the job does not exist any more."""


class UploadGone(FairlaneError):
    """The uploaded file was deleted, expired or replaced."""


class QueryRefused(FairlaneError):
    """The source of records does not take the query."""


class ReceiptExpired(FairlaneError):
    """The receipt handle no longer refers to a message in flight."""


# --- what the job rules raise -----------------------------------------------------------------


class OwnershipLost(FairlaneError):
    """Another attempt or job holds the subject now; this worker must not touch anything."""


class Undecodable(FairlaneError):
    """A stored job item does not have the shape of a job."""

    def __init__(self, message: str | None = None, *, new_words: bool = False) -> None:
        super().__init__(message)
        self.new_words = new_words
        """Only words are unknown, such as a state or a reason: a newer version may have them."""


class JobFailed(FairlaneError):
    """The job can never succeed, whatever is retried."""

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(message or reason)
        self.reason = reason
