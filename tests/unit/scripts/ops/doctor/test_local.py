"""``fairlane doctor`` on the processes of a local stack."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from scripts.local.processes import Process
from scripts.local.state import State
from scripts.ops.doctor.finding import Grade
from scripts.ops.doctor.local import check_processes


def wrong(state: State) -> list[str]:
    return [each.what for each in check_processes(state, "x") if each.grade is Grade.WRONG]


def test_processes_that_ended_are_found() -> None:
    started = psutil.Process().create_time()
    here = Process(pid=os.getpid(), started=started, log=Path("log"))
    gone = here.model_copy(update={"started": started - 100})
    assert wrong(State(workers=(here,), wanted=1, search=here, supervisor=here)) == []
    assert wrong(State(workers=(here, gone), wanted=2)) == ["1 of 2 bulk workers run"]
    assert wrong(State(search=gone)) == wrong(State(supervisor=gone)) == ["its process has ended"]
