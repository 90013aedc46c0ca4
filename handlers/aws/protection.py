"""ECS task scale-in protection: a task that works on a job is not chosen for scale-in.

It is short and renewed, so that a task that hangs loses it; the endpoint's JSON body is read, since
a refusal can come with HTTP 200 (ECS agent, task-protection/v1/state). No endpoint is normal: then
nothing protects the task, and a stop costs it the rest of one chunk.

It also has an end. A deployment waits for protected tasks, and a worker under steady load is never
idle; CloudFormation gives up and rolls back after three hours. So after ``limit`` a task goes
unprotected for a while, busy or not, in which ECS can stop it: the worker hears SIGTERM, takes no
other message and gives its jobs back at their chunk boundaries. ECS starts the new task before
that, so a bad release does not empty the lane, as it would if workers left by themselves.
"""

from __future__ import annotations

import json
import math
import threading
import time
from typing import TYPE_CHECKING, Final

import urllib3

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.ports import Telemetry

EXPIRES_MINUTES: Final = 10
RENEW_SECONDS: Final = 240.0
LIMIT_SECONDS: Final = 15 * 60.0
PAUSE_SECONDS: Final = 5 * 60.0
"""ECS looks at its services about once a minute."""
TIMEOUT: Final = 3.0


class Terms:
    """When a task may be protected: at most ``limit`` seconds from the first moment on, then not
    for ``pause`` seconds. Only a pause that long starts it anew; ECS may not notice a shorter one.
    """

    def __init__(self, limit: float = LIMIT_SECONDS, pause: float = PAUSE_SECONDS) -> None:
        self._limit = limit
        self._pause = pause
        self._began: float | None = None
        self._idle_since: float | None = None

    def protects(self, now: float, *, busy: bool) -> bool:
        """now: seconds of a clock that never goes back. Called whenever ``busy`` changes."""
        self._notice(now, busy=busy)
        if not busy:
            return False
        if self._began is None:
            self._began = now
        return now < self._began + self._limit

    def left(self, now: float) -> float:
        """Seconds for which a busy task stays as it is: protected, or in its pause."""
        if self._began is None:
            return self._limit
        end = self._began + self._limit
        return end - now if now < end else max(0.0, end + self._pause - now)

    def _notice(self, now: float, *, busy: bool) -> None:
        if self._idle_since is not None and now >= self._idle_since + self._pause:
            self._began = None
        if self._began is not None and now >= self._began + self._limit + self._pause:
            self._began = None
        if busy:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now


class Protection:
    """A context manager around each job; the task is protected while any job runs."""

    def __init__(
        self,
        agent: str | None,
        telemetry: Telemetry,
        *,
        renew_seconds: float = RENEW_SECONDS,
        terms: Terms | None = None,
    ) -> None:
        self._url = f"{agent}/task-protection/v1/state" if agent else None
        self._telemetry = telemetry
        self._renew = renew_seconds
        self._terms = terms or Terms()
        self._pool = urllib3.PoolManager(timeout=TIMEOUT, retries=False)
        self._running = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._keep, name="protection", daemon=True)
        if self._url:
            self._thread.start()

    def __enter__(self) -> None:
        with self._changed:
            self._running += 1
            self._changed.notify()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify()

    def close(self) -> None:
        """Give the protection up and stop renewing it."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._url:
            self._thread.join()

    def _keep(self) -> None:
        """Its own thread: asking the agent must never hold a job up."""
        protected = False
        while True:
            with self._changed:
                wanted = self._wanted()
                if wanted == protected and not self._closed:
                    self._changed.wait(self._patience(protected=protected))
                    wanted = self._wanted()
                closed = self._closed
            if wanted or protected:
                protected = self._ask(wanted=wanted)
            if closed:
                return

    def _wanted(self) -> bool:
        busy = self._running > 0 and not self._closed
        return self._terms.protects(time.monotonic(), busy=busy)

    def _patience(self, *, protected: bool) -> float | None:
        """Seconds until the next look, None: until something changes."""
        left = self._terms.left(time.monotonic())
        if protected:
            return min(self._renew, left)
        return left if self._running else None

    def _ask(self, *, wanted: bool) -> bool:
        """Ask for the state; returns whether the task is protected as far as we know."""
        body: dict[str, object] = {"ProtectionEnabled": wanted}
        if wanted:
            # Never past the end of what the task may have, in case that is not renewed or undone.
            left = math.ceil(self._terms.left(time.monotonic()) / 60)
            body["ExpiresInMinutes"] = max(1, min(EXPIRES_MINUTES, left))
        try:
            reply = self._pool.request("PUT", self._url or "", json=body)
            answer = json.loads(reply.data)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            self._telemetry.log("protection_failed", wanted=wanted, why=str(error))
            return wanted
        if not isinstance(answer, dict) or not isinstance(answer.get("protection"), dict):
            self._telemetry.log(
                "protection_refused", wanted=wanted, status=reply.status, why=answer
            )
        return wanted


def protection_from(env: Mapping[str, str], telemetry: Telemetry, minutes: int = 15) -> Protection:
    """The protection of the task this process runs in, if it runs in one. minutes: its limit."""
    return Protection(env.get("ECS_AGENT_URI"), telemetry, terms=Terms(minutes * 60.0))
