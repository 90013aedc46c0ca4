"""The results of a delivery, as values: an attempt to run, or a decision about its message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import Delivery, LaneQueue


LOOK_AGAIN: Final = 5
"""Seconds until the message of a job that could not be read is received again."""


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
    alone, because it may be another worker's by now."""

    why: str
    seconds: int | None
    receipt: str | None = None


Decision = DeleteMessage | KeepMessage
Finding = RunAttempt | Decision


def apply_decision(queue: LaneQueue, delivery: Delivery, decision: Decision) -> bool:
    """Do with the message what was decided; True when it is gone.

    A failure is harmless: the message comes back, and its next delivery decides again.
    Raises Transient, ReceiptExpired.
    """
    receipt = decision.receipt or delivery.receipt
    if isinstance(decision, DeleteMessage):
        queue.delete(receipt)
        return True
    if decision.seconds is not None:
        queue.set_visibility(receipt, decision.seconds)
    return False
