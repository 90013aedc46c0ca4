"""The function that an entrypoint calls for each message of its lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..words.errors import Transient
from .attempt import run_attempt
from .decisions import LOOK_AGAIN, KeepMessage, RunAttempt
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
            return run_attempt(world, finding.job, delivery, worker)
    except Transient as error:
        world.telemetry.log("message_kept", message_id=delivery.message_id, why=str(error))
        return KeepMessage("dependency", LOOK_AGAIN)
    return finding
