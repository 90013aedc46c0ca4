"""Where the work of an attempt ended, and whether the job is still the attempt's to work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import OwnershipLost
from .outcomes import Stop
from .reading import read_job
from .settle import insist
from .states import State

if TYPE_CHECKING:
    from .model import Job
    from .ports import World


@dataclass(frozen=True)
class Walked:
    """Where a walk ended; ``stop`` is None when every record is settled."""

    job: Job
    stop: Stop | None


class Stopped(Exception):
    """The job was asked to stop."""

    def __init__(self, job: Job, stop: Stop) -> None:
        super().__init__(stop)
        self.walked = Walked(job, stop)


def still_running(world: World, job: Job) -> Job:
    """The job as it is now, if it is still this attempt's to run.

    Raises Stopped when it was asked to cancel or pause, OwnershipLost when it is somebody else's.
    """
    now = insist(world, lambda: read_job(world, job.id))
    if now is None or now.fence != job.fence:
        raise OwnershipLost
    if now.state is State.CANCELLING:
        raise Stopped(now, Stop.CANCELLED)
    if now.state is State.PAUSING:
        raise Stopped(now, Stop.PAUSED)
    if now.state is not State.RUNNING:
        raise OwnershipLost
    return now
