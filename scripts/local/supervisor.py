"""Replaces bulk workers that have ended, as ECS does for a service.

A process beside the stack: ``fairlane local up`` starts it and ``down`` ends it first. It writes
the stack's state only while no command does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from . import processes
from .clients import Clients
from .errors import InUse
from .ministack import addresses
from .processes import Process
from .project import PACKAGES
from .state import StackFolder, State
from .worker import Workers

LOOK_S: Final = 0.5
PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
STEADY_S: Final = 20.0
"""A worker that ran this long did not end because it could not start."""


class Supervisor:
    """Keeps a stack's workers at their number. clock: seconds, monotonic."""

    def __init__(
        self,
        folder: StackFolder,
        *,
        workers_of: Callable[[State, Callable[[Sequence[Process]], None]], Workers],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._workers_of = workers_of
        self._clock = clock
        self._pause = PAUSE_S
        self._replaced = float("-inf")

    def look(self) -> int:
        """Start a worker for each one that has ended; returns how many. After workers that end at
        once it waits, longer each time."""
        if not _missing(self._folder.read()):
            return 0
        now = self._clock()
        since = now - self._replaced
        if since < self._pause:
            return 0
        steady = since > self._pause + STEADY_S
        self._pause = PAUSE_S if steady else min(2 * self._pause, LONGEST_PAUSE_S)
        try:
            with self._folder.exclusive():
                started = self._replace(self._folder.read())
        except InUse:  # a command is at it: what it leaves is looked at next time
            return 0
        self._replaced = now
        return started

    def _replace(self, state: State) -> int:
        missing = _missing(state)
        if not missing:
            return 0
        alive = tuple(worker for worker in state.workers if worker.alive())
        state = state.model_copy(update={"workers": alive})

        def changed(workers: Sequence[Process]) -> None:
            self._folder.write(state.model_copy(update={"workers": tuple(workers)}))

        for worker in self._workers_of(state, changed).start(missing):
            print(f"a bulk worker had ended; started {worker.pid} in its place", flush=True)
        return missing


def _missing(state: State) -> int:
    """Workers that should run and do not."""
    if not state.up:
        return 0
    return max(0, state.wanted - sum(worker.alive() for worker in state.workers))


def workers_of(
    folder: StackFolder, state: State, changed: Callable[[Sequence[Process]], None]
) -> Workers:
    """The bulk workers that a stack's state names."""
    assert state.deployed is not None  # a stack that is up is deployed
    clients = Clients(state.port, state.database_port)
    return Workers(
        clients.ecs,
        credentials_of=clients.credentials_of if state.iam else None,
        task_definition=state.deployed.only("AWS::ECS::TaskDefinition"),
        addresses=addresses(state.port, state.database_port),
        folder=folder.path,
        code=state.code or PACKAGES,
        known=state.workers,
        changed=changed,
    )


def start(folder: StackFolder) -> Process:
    """Start the supervisor of a stack as a process of its own."""
    return processes.start(
        [sys.executable, "-m", "scripts.local.supervisor", folder.name, str(folder.path.parent)],
        env={
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "PYTHONUNBUFFERED": "1",
        },
        cwd=PACKAGES,
        log=folder.path / "supervisor.log",
    )


def main(name: str, root: str) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    folder = StackFolder(name, Path(root))
    supervisor = Supervisor(
        folder, workers_of=lambda state, changed: workers_of(folder, state, changed)
    )
    while not ended.wait(LOOK_S):
        _reap()
        supervisor.look()


def _reap() -> None:
    """Ended workers would stay behind as zombies, and a command that stops them would wait."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
