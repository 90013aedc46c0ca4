"""The function that an entrypoint calls for each message of its lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..words.errors import Transient
from ..words.messages import read_pointer
from .attempt import run_attempt
from .decisions import (
    KeepMessage,
    LookAgain,
    RunAttempt,
    renewed,
    wait_before_next_receive,
)
from .delivery import find_out

if TYPE_CHECKING:
    from ..words.ports import Delivery, World
    from .decisions import Decision
    from .stopping import Worker


def on_message(world: World, delivery: Delivery, worker: Worker) -> Decision:
    """Do what the message's job needs, which can take hours, and decide about the message.

    Never raises because of a dependency: the message of a job it failed for is kept.
    """
    try:
        finding = find_out(world, delivery, worker)
        if isinstance(finding, RunAttempt):
            return run_attempt(world, finding, delivery, worker)
    except Transient as error:
        world.telemetry.log("message_kept", message_id=delivery.message_id, why=str(error))
        finding = LookAgain("dependency")
    return _look_again(world, delivery, finding) if isinstance(finding, LookAgain) else finding


def _look_again(world: World, delivery: Delivery, finding: LookAgain) -> Decision:
    """Keep the message for a while. Near its last receive a fresh one takes its place, since an
    outage must not make it a dead letter."""
    pointer = read_pointer(delivery.body)
    timing = world.timing.lane(pointer.lane)
    keep = KeepMessage(finding.why, wait_before_next_receive(delivery, timing.visibility))
    if delivery.receive_count < timing.max_receive_count - 1:
        return keep
    return renewed(world, delivery, finding.why) or keep
