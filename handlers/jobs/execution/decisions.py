"""The results of a delivery, as values: an attempt to run, or a decision about its message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..words.errors import OutcomeUnknown, Transient
from ..words.messages import Message, group_of, read_pointer

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import Delivery, LaneQueue, World


LOOK_AGAIN: Final = 5
"""Seconds until a message for which nothing could be done is received again, the first time."""

MAX_DOUBLINGS: Final = 16


@dataclass(frozen=True)
class RunAttempt:
    """An attempt has begun. How it ends decides about the message."""

    job: Job
    contended: bool = False
    """Another job waited for the slot."""


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


@dataclass(frozen=True)
class LookAgain:
    """Nothing could be done for the message now: it must come back, later each time."""

    why: str


Decision = DeleteMessage | KeepMessage
Finding = RunAttempt | LookAgain | Decision


def wait_before_next_receive(delivery: Delivery, visibility: int) -> int:
    """Seconds, doubled with each receive up to the lane's visibility: the receives of one message
    then outlast an outage, and its job starts at most a visibility timeout after the end of it."""
    return min(visibility, LOOK_AGAIN << min(delivery.receive_count - 1, MAX_DOUBLINGS))


def renewed(world: World, delivery: Delivery, why: str) -> DeleteMessage | None:
    """Send a fresh message, whose receives start anew, and delete the delivered one; None when the
    queue did not take it."""
    pointer = read_pointer(delivery.body)
    group = delivery.group or group_of(pointer.job_id)
    try:
        refused = world.queues[pointer.lane].send([Message(pointer.job_id, pointer.lane, group)])
    except (Transient, OutcomeUnknown) as error:
        world.telemetry.log("message_not_renewed", job_id=pointer.job_id, why=str(error))
        return None
    return None if refused else DeleteMessage(f"{why}: sent again")


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
