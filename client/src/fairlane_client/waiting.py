"""Looking at a job until it has ended, through moments in which the API does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from .models import JobView
from .problems import ApiProblem, StillRunning, Unreachable
from .transport import TOO_MANY, pause

FIRST_SERVER_ERROR: Final = 500
SILENCE: Final = 0.25
"""Of a time-out: the part of it in which a watched API may give no answer."""
SILENCE_AT_LEAST_S: Final = 30.0
SILENCE_WITHOUT_TIMEOUT_S: Final = 600.0


def watch(
    look: Callable[[], JobView],
    now: Callable[[], float],
    sleep: Callable[[float], None],
    poll: float,
    timeout: float | None,
) -> Iterator[JobView]:
    """See ``Client.watch``."""
    deadline = None if timeout is None else now() + timeout
    silence = _Silence(now, timeout)
    while True:
        try:
            job = look()
        except (ApiProblem, Unreachable) as error:
            wait = max(poll, silence.heard(error))
        else:
            silence.over()
            yield job
            if job.ended:
                return
            wait = poll
        if deadline is not None and now() + wait > deadline:
            raise silence.error or StillRunning(f"job {job.id} is {job.state} after {timeout:g} s")
        sleep(wait)


class _Silence:
    """How long an API has given no answer, and how long it may."""

    def __init__(self, now: Callable[[], float], timeout: float | None) -> None:
        self._now = now
        self._most = (
            SILENCE_WITHOUT_TIMEOUT_S
            if timeout is None
            else max(SILENCE_AT_LEAST_S, timeout * SILENCE)
        )
        self._since: float | None = None
        self._failed = 0
        self.error: ApiProblem | Unreachable | None = None
        """The newest, until there is an answer."""

    def over(self) -> None:
        self._since, self._failed, self.error = None, 0, None

    def heard(self, error: ApiProblem | Unreachable) -> float:
        """Seconds until the next look. Raises the error when it is an answer, or has lasted."""
        passing = not isinstance(error, ApiProblem) or (
            error.status == TOO_MANY or error.status >= FIRST_SERVER_ERROR
        )
        if self._since is None:
            self._since = self._now()
        if not passing or self._now() - self._since >= self._most:
            raise error
        self._failed, self.error = self._failed + 1, error
        wait = pause(error, self._failed)
        return self._most if wait is None else wait
