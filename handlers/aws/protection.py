"""ECS task scale-in protection: a task that works on a job is not chosen for scale-in.

It is short and renewed, so that a task that hangs loses it; the endpoint's JSON body is read, since
a refusal can come with HTTP 200 (ECS agent, task-protection/v1/state). No endpoint is normal: then
nothing protects the task, and a stop costs it the rest of one chunk.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Final

import urllib3

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..jobs.words.ports import Telemetry

EXPIRES_MINUTES: Final = 10
RENEW_SECONDS: Final = 240.0
TIMEOUT: Final = 3.0


class Protection:
    """A context manager around each job; the task is protected while any job runs."""

    def __init__(
        self, agent: str | None, telemetry: Telemetry, *, renew_seconds: float = RENEW_SECONDS
    ) -> None:
        self._url = f"{agent}/task-protection/v1/state" if agent else None
        self._telemetry = telemetry
        self._renew = renew_seconds
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
                wanted = self._running > 0 and not self._closed
                if wanted == protected and not self._closed:
                    self._changed.wait(self._renew if protected else None)
                    wanted = self._running > 0 and not self._closed
                closed = self._closed
            if wanted or protected:
                protected = self._ask(wanted=wanted)
            if closed:
                return

    def _ask(self, *, wanted: bool) -> bool:
        """Ask for the state; returns whether the task is protected as far as we know."""
        body: dict[str, object] = {"ProtectionEnabled": wanted}
        if wanted:
            body["ExpiresInMinutes"] = EXPIRES_MINUTES
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


def protection_from(env: Mapping[str, str], telemetry: Telemetry) -> Protection:
    """The protection of the task this process runs in, if it runs in one."""
    return Protection(env.get("ECS_AGENT_URI"), telemetry)
