"""Processes that outlive the command that started them, known by pid and start time.

A pid alone may have been given to somebody else's process since; only a process that also
started when ours did is ever signalled.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil
from pydantic import BaseModel, ConfigDict

NICENESS: Final = 5
"""Of what leaves the processor to processes that want it: about a third of a share."""
AUTOGROUP_TRIES: Final = 20
AUTOGROUP_PAUSE_S: Final = 0.1
"""Between two tries: from anybody but root, Linux takes one in a tenth of a second."""
SAME_START_S = 1.5
"""Start times are derived from the boot time, which the system may correct a little."""


class Process(BaseModel):
    """A process we started: what ``state.json`` remembers of it."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: float
    """Seconds since the epoch, as the operating system tells it."""
    log: Path

    def find(self) -> psutil.Process | None:
        """The running process, or None when it has ended (or its pid belongs to another)."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < SAME_START_S
            ended = found.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return None
        return found if same and not ended else None

    def alive(self) -> bool:
        return self.find() is not None

    def listens(self, port: int) -> bool:
        """It is this process, not another, that has the TCP port."""
        found = self.find()
        try:
            sockets = found.net_connections("tcp4") if found else []
        except psutil.Error:
            return False
        return any(s.status == psutil.CONN_LISTEN and s.laddr.port == port for s in sockets)

    def terminate(self) -> None:
        """Ask it to stop (SIGTERM); fine when it has ended already."""
        if found := self.find():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.terminate()

    def kill(self) -> None:
        """SIGKILL; fine when it has ended already."""
        if found := self.find():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.kill()

    def wait(self, timeout: float) -> int | None:
        """Wait up to ``timeout`` seconds for the end. The exit code (minus the signal's number
        when one ended it), or None when it was not started by this interpreter.
        Raises TimeoutError."""
        try:
            if child := _children.get((self.pid, self.started)):
                return child.wait(timeout)
            if found := self.find():
                found.wait(timeout)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            raise TimeoutError(f"process {self.pid} still runs after {timeout:g} s") from None
        return None

    def tail(self, lines: int = 15) -> str:
        """The end of its log, for error messages."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""


_children: Final[dict[tuple[int, float], subprocess.Popen[bytes]]] = {}
"""Those this interpreter started, by pid and start: only their parent learns how they ended."""


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    behind: bool = False,
) -> Process:
    """Start a process in its own session (Ctrl-C in the terminal does not reach it), with its
    output appended to ``log``. behind: other processes have more of the processor.
    Raises OSError."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        child = subprocess.Popen(  # noqa: S603 - our own commands
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if behind:
        _stand_back(child.pid)
    started = psutil.Process(child.pid).create_time()
    _children[child.pid, started] = child
    return Process(pid=child.pid, started=started, log=log)


def _stand_back(pid: int) -> None:
    """Of a process that has no threads yet. Best effort: it may have ended already."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    # Where Linux shares the processor out among sessions, niceness counts within a session only.
    session = Path(f"/proc/{pid}/autogroup")
    with contextlib.suppress(OSError):
        for _ in range(AUTOGROUP_TRIES if session.exists() else 0):
            try:
                session.write_text(str(NICENESS))
            except BlockingIOError:
                time.sleep(AUTOGROUP_PAUSE_S)
            else:
                break


def stop(processes: Sequence[Process], *, grace: float) -> None:
    """Stop these and everything they started: SIGTERM, ``grace`` seconds in all, SIGKILL. What they
    started is asked when they have ended: not before, since they could start it again. That
    includes what they start while they are being stopped.

    Returns when all of them have ended; those that are dead already are left alone.
    """
    latest = time.monotonic() + grace
    asked = [found for process in processes if (found := process.find())]
    started: set[psutil.Process] = set()
    for parent in asked:
        with contextlib.suppress(psutil.NoSuchProcess):
            started.update(parent.children(recursive=True))
    for process in processes:
        process.terminate()
    psutil.wait_procs(asked, timeout=grace)
    started |= _of_sessions(asked)
    for child in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.terminate()
    left = max(0.0, latest - time.monotonic())
    _, still_there = psutil.wait_procs({*asked, *started}, timeout=left)
    for survivor in still_there:
        with contextlib.suppress(psutil.NoSuchProcess):
            survivor.kill()
    psutil.wait_procs(still_there, timeout=grace)
    for process in processes:
        if own := _children.pop((process.pid, process.started), None):
            own.wait(grace)


def _of_sessions(leaders: Sequence[psutil.Process]) -> set[psutil.Process]:
    """What runs in the sessions that these processes began. Who is whose child does not tell: of a
    process that has ended, they are another's."""
    sessions = {leader.pid for leader in leaders}
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if process.pid not in sessions and os.getsid(process.pid) in sessions:
                found.add(process)
    return found
