"""Processes of a local stack end with all that they started."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

import psutil
import pytest

from scripts.local import processes

CHILD: Final = """
import pathlib, signal, sys, time

def ended(*_):
    pathlib.Path("said").write_text("asked")
    sys.exit()

signal.signal(signal.SIGTERM, ended)
pathlib.Path("ready").touch()
time.sleep(600)
"""
PARENT: Final = """
import pathlib, subprocess, sys, time

child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
while not pathlib.Path("ready").exists():
    time.sleep(0.01)
pathlib.Path("child").write_text(str(child.pid))
pathlib.Path("up").touch()
time.sleep(600)
"""
PATIENCE: Final = 30
"""Seconds: no outcome depends on how many."""


@pytest.fixture
def parent(tmp_path: Path) -> processes.Process:
    """It does nothing about its child when it ends."""
    command = [sys.executable, "-c", PARENT, CHILD]
    started = processes.start(command, env=os.environ, cwd=tmp_path, log=tmp_path / "log")
    while not (tmp_path / "up").exists():
        assert started.alive(), started.tail()
    return started


def test_what_a_stopped_process_leaves_is_asked_to_end_and_not_only_killed(
    parent: processes.Process, tmp_path: Path
) -> None:
    """The functions of a local AWS are such: each stop waited its whole grace for them."""
    child = int((tmp_path / "child").read_text())
    processes.stop([parent], grace=PATIENCE)
    assert (tmp_path / "said").read_text() == "asked"
    assert not parent.alive()
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


LATE: Final = """
import pathlib, signal, subprocess, sys, time

def asked(*_):
    late = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("late.new").write_text(str(late.pid))
    pathlib.Path("late.new").rename("late")
    if sys.argv[1] == "ends":
        sys.exit()

signal.signal(signal.SIGTERM, asked)
pathlib.Path("up").touch()
while True:
    time.sleep(600)
"""


@pytest.mark.parametrize("then", ["ends", "goes on"])
def test_what_a_process_starts_when_it_is_asked_to_end_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The local AWS may be starting a function at that moment."""
    command = [sys.executable, "-c", LATE, then]
    process = processes.start(command, env=os.environ, cwd=tmp_path, log=tmp_path / "log")
    while not (tmp_path / "up").exists():
        assert process.alive(), process.tail()
    wait = psutil.wait_procs

    def impatient(procs: Collection[psutil.Process], timeout: float) -> object:
        """Gives up once the process has done it, as if the grace were over."""
        while not (tmp_path / "late").exists():
            time.sleep(0.01)
        if then == "goes on" and process.alive() and not killed:
            return [], list(procs)
        return wait(procs, timeout)

    killed: list[int] = []
    kill = psutil.Process.kill

    def noted(self: psutil.Process) -> None:
        killed.append(self.pid)
        kill(self)

    monkeypatch.setattr(psutil, "wait_procs", impatient)
    monkeypatch.setattr(psutil.Process, "kill", noted)
    processes.stop([process], grace=PATIENCE)
    late = int((tmp_path / "late").read_text())
    assert not psutil.pid_exists(late) or psutil.Process(late).status() == psutil.STATUS_ZOMBIE
    assert set(killed) == ({process.pid, late} if then == "goes on" else set())


SLEEPING: Final = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.mark.parametrize("behind", [True, False])
def test_a_process_lets_others_go_first_if_it_is_started_so(
    tmp_path: Path, *, behind: bool
) -> None:
    process = processes.start(
        SLEEPING, env=os.environ, cwd=tmp_path, log=tmp_path / "log", behind=behind
    )
    try:
        own = os.getpriority(os.PRIO_PROCESS, 0)
        expected = max(processes.NICENESS, own) if behind else own
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == expected
        session = Path(f"/proc/{process.pid}/autogroup")  # only Linux has it
        if os.access(session, os.W_OK):
            assert session.read_text().split()[-1] == (str(processes.NICENESS) if behind else "0")
    finally:
        processes.stop([process], grace=PATIENCE)


def test_a_session_that_linux_lets_change_later_is_changed_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who is not root may write one in a tenth of a second."""
    written: list[str] = []

    class Session:
        def __init__(self, path: str) -> None:
            assert path.endswith("/autogroup")

        def exists(self) -> bool:
            return True

        def write_text(self, text: str) -> None:
            written.append(text)
            if len(written) < 4:
                raise BlockingIOError

    monkeypatch.setattr(processes, "Path", Session)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    processes._stand_back(1)
    assert written == [str(processes.NICENESS)] * 4
