"""What a delivery leads to, and why a worker stops: values that somebody else acts on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ports import Delivery, LaneQueue


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


def act(queue: LaneQueue, delivery: Delivery, decision: Decision) -> bool:
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


class Stop(StrEnum):
    """Why a worker leaves its loop before the last record. None of these is a failure."""

    CANCELLED = "cancelled"
    PAUSED = "paused"
    SHUTDOWN = "shutdown"
    """The process was asked to end; the attempt is given back."""
    OUT_OF_TIME = "out_of_time"
    """Too little of the function's time is left: go on in the bulk lane."""
    HAND_OVER = "hand_over"
    """The message nears its visibility cap or its last receive: go on with a fresh one."""
    LOST = "lost"
    """The lease could not be kept."""
