"""What a delivery leads to, as values: an attempt to run, or a decision about its message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import Delivery, LaneQueue


LOOK_AGAIN: Final = 5
"""Seconds until a message is received again whose job could not be looked at."""


@dataclass(frozen=True)
class RunAttempt:
    """An attempt has begun. How it ends decides about the message."""

    job: Job


@dataclass(frozen=True)
class DeleteMessage:
    """The message has done its work (or can never do any)."""

    why: str
    receipt: str | None = None
    """A newer receipt handle than the delivery's own, if one is known."""


@dataclass(frozen=True)
class KeepMessage:
    """The message must come back, after ``seconds`` hidden from now; None leaves its visibility
    alone, because it may be somebody else's by now."""

    why: str
    seconds: int | None
    receipt: str | None = None


Decision = DeleteMessage | KeepMessage
Finding = RunAttempt | Decision


def apply_decision(queue: LaneQueue, delivery: Delivery, decision: Decision) -> bool:
    """Do with the message what was decided; True when it is gone.

    Failing is harmless: the message comes back, and the next look decides again.
    Raises Transient, ReceiptExpired.
    """
    receipt = decision.receipt or delivery.receipt
    if isinstance(decision, DeleteMessage):
        queue.delete(receipt)
        return True
    if decision.seconds is not None:
        queue.set_visibility(receipt, decision.seconds)
    return False
