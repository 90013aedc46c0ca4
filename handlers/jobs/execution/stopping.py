"""Why an attempt stops before its job's last record, and whether the job is still its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ..storage.control_table import read_job
from ..storage.transaction import retry_transient
from ..words.errors import OwnershipLost
from ..words.states import State

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import World
    from .governor import Governor
    from .rate_limiter import RateLimiter
    from .turns import FreeSlot


class StopReason(StrEnum):
    """Why a worker leaves its loop before the last record. None of these is a failure."""

    CANCELLED = "cancelled"
    PAUSED = "paused"
    SHUTDOWN = "shutdown"
    """The process was asked to end; the attempt is given back."""
    OUT_OF_TIME = "out_of_time"
    """Too little of the function's time is left: go on in the bulk lane."""
    HAND_OVER = "hand_over"
    """The message nears its visibility cap or its last receive: go on with a fresh one."""
    HOPELESS = "hopeless"
    """More records failed than the job tolerates: it ends, and the rest is left alone."""
    SLICE = "slice"
    """Its slice is over, and another job has its turn in the bulk lane."""
    LOST = "lost"
    """The lease could not be kept."""


@dataclass(frozen=True)
class Worker:
    """The process that runs the attempt, as far as the rules need to know it."""

    name: str
    """Unique per delivery: an attempt whose beginning got no reply is known by it."""
    stopping: Callable[[], bool] = lambda: False
    """True when the process was asked to end."""
    deadline: int | None = None
    """When the process will be killed (ms), if that is known."""
    governor: Governor | None = None
    """What sets the pace of its bulk jobs; None: they take what they can get."""
    limiter: RateLimiter | None = None
    """What keeps its bulk jobs to the rate limits; None: they have none."""
    slot: FreeSlot | None = None
    """What keeps its bulk jobs to their turns; None: it takes any job at once."""
    hung: Callable[[], None] = lambda: None
    """Called when an attempt hangs: its thread may never return, and the process has to end."""
    started: Callable[[int], None] = lambda _dwell_ms: None
    """Called with the dwell (ms) of a small job that starts for the first time."""


@dataclass(frozen=True)
class LoopEnd:
    """How a walk ended; ``stop`` is None when every record is done."""

    job: Job
    stop: StopReason | None


class StopRequested(Exception):
    """The job was asked to stop."""

    def __init__(self, job: Job, stop: StopReason) -> None:
        super().__init__(stop)
        self.loop_end = LoopEnd(job, stop)


def still_running(world: World, job: Job) -> Job:
    """The job as it is now, if it is still this attempt's to run.

    Raises StopRequested when the job was asked to cancel or pause, OwnershipLost when another
    attempt or job has the subject.
    """
    now = retry_transient(world, lambda: read_job(world, job.id))
    if now is None or now.fence != job.fence:
        raise OwnershipLost
    if now.state is State.CANCELLING:
        raise StopRequested(now, StopReason.CANCELLED)
    if now.state is State.PAUSING:
        raise StopRequested(now, StopReason.PAUSED)
    if now.state is not State.RUNNING:
        raise OwnershipLost
    return now
