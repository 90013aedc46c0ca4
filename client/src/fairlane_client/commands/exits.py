"""Exit statuses, as docs/client.md lists them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..problems import ClientError, NotAllowed, StillRunning, Unreachable
from ..words import State

if TYPE_CHECKING:
    from ..models import JobView


class Exit(IntEnum):
    WELL = 0
    """Of a job that was waited for: SUCCEEDED, and no record failed or was refused."""
    REFUSED = 1
    """The API refused the request, or the command cannot do what was asked."""
    TYPED_WRONG = 2
    """An option or argument; nothing was sent."""
    WITH_FAILURES = 3
    """The job SUCCEEDED, but some records failed or were refused outside."""
    FAILED = 4
    CANCELLED = 5
    UNREACHABLE = 6
    """No answer, or one that is not Fairlane's."""
    NOT_ALLOWED = 7
    """The token is missing, has run out or is not enough."""
    STILL_RUNNING = 8
    """The time-out of a wait is over; the job goes on."""
    INTERRUPTED = 130
    """Ctrl-C."""


def of_job(job: JobView) -> Exit:
    """Of a job that has ended."""
    if job.state == State.CANCELLED:
        return Exit.CANCELLED
    if job.state != State.SUCCEEDED:
        return Exit.FAILED
    return Exit.WITH_FAILURES if job.failed or job.refused else Exit.WELL


def of_error(error: ClientError) -> Exit:
    match error:
        case NotAllowed():
            return Exit.NOT_ALLOWED
        case Unreachable():
            return Exit.UNREACHABLE
        case StillRunning():
            return Exit.STILL_RUNNING
        case _:
            return Exit.REFUSED
