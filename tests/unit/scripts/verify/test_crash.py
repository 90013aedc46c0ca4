"""How the crash scenario judges rows: each of its claims can fail."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from fairlane_client import NewJob
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.load.plan import Planned
from scripts.load.truth import Ran
from scripts.local.stack import LocalStack
from scripts.verify import chaos, crash, storm
from scripts.verify.chaos import Jobs, regions
from scripts.verify.crash import Harm, Leftovers, all_done, nothing_left
from scripts.verify.storm import Plan, Storm

IDS = ("a", "b", "c")
DONE = JobRow(
    id="1",
    tenant="t",
    subject="s",
    lane=Lane.BULK,
    state=State.SUCCEEDED,
    total=3,
    position=3,
    succeeded=3,
    failed=0,
    skipped=0,
    attempt=2,
    created_at=1,
)
NOTHING = Leftovers(subjects=0, slots=0, dispatches=0, messages=0, dead_letters=0)


def judged(*rows: JobRow) -> bool:
    [seen] = all_done([Ran(Planned("t", "s", IDS, Decimal(1)), row) for row in rows])
    return seen.ok


def test_jobs_that_did_everything_are_done() -> None:
    assert judged(DONE, DONE)


@pytest.mark.parametrize(
    "off",
    [
        {"state": State.FAILED},
        {"state": State.RUNNING},
        {"position": 2},
        {"succeeded": 2, "failed": 1},
        {"succeeded": 2, "skipped": 1},
        {"total": 2, "position": 2, "succeeded": 2},
    ],
)
def test_one_job_that_did_not_is_seen(off: dict[str, object]) -> None:
    assert not judged(DONE, DONE.model_copy(update=off))


def test_nothing_left_is_fine() -> None:
    assert not NOTHING.any
    assert all(each.ok for each in nothing_left(NOTHING))


@pytest.mark.parametrize("name", ["subjects", "slots", "dispatches", "messages", "dead_letters"])
def test_anything_left_is_seen(name: str) -> None:
    left = Leftovers(**{**vars(NOTHING), name: 1})
    assert left.any
    assert sum(not each.ok for each in nothing_left(left)) == 1


def test_a_seed_is_one_plan_and_all_of_it_happens_in_time() -> None:
    one = Plan.of(7, ends=40, kills=8, stops=4, freezes=3)
    assert one == Plan.of(7, ends=40, kills=8, stops=4, freezes=3)
    assert one != Plan.of(8, ends=40, kills=8, stops=4, freezes=3)
    assert (len(one.kills), len(one.stops), len(one.freezes)) == (8, 4, 3)
    moments = (*one.kills, *one.stops, *one.freezes, *one.recovery_down)
    assert all(0 < at < one.ends for at in moments)


def test_jobs_run_on_records_that_no_other_job_touches_meanwhile() -> None:
    """Otherwise one could fail a record because the other keeps changing it."""
    keys = [(region.tenant, id_) for region in regions() for id_ in region.ids]
    assert len(keys) == len(set(keys))


class Submitted:
    """A ledger and a client: what has been submitted so far is there."""

    def __init__(self) -> None:
        self.rows: dict[str, JobRow] = {}

    def jobs(self) -> dict[str, JobRow]:
        return dict(self.rows)

    def submit(self, _: NewJob) -> JobRow:
        row = DONE.model_copy(update={"id": str(len(self.rows)), "state": State.QUEUED})
        self.rows[row.id] = row
        return row


def test_every_job_that_was_submitted_has_been_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storm may end right after some have been."""
    submitted = Submitted()
    monkeypatch.setattr(chaos, "Ledger", lambda _: submitted)
    monkeypatch.setattr(chaos, "Client", lambda *_: submitted)
    monkeypatch.setattr(chaos, "Site", lambda *_: None)
    stack = SimpleNamespace(
        api=SimpleNamespace(url=""), issuer=SimpleNamespace(token=lambda tenant: tenant)
    )
    jobs = Jobs(cast("LocalStack", stack), Random(1))  # noqa: S311  repeatable
    jobs.top_up()
    assert len(jobs.ran()) == len(regions())
    submitted.rows["0"] = DONE.model_copy(update={"id": "0"})
    jobs.top_up()
    assert len(jobs.ran()) == len(regions()) + 1


FUNCTION = "Fairlane-SmallLane"
STARTED = f"INFO Lambda worker spawned for {FUNCTION} (python3.13, cold start)\n"
TIMED_OUT = f"timed out after {chaos.FUNCTION_TIMEOUT}s"
KILLED = f"WARNING Lambda {FUNCTION} {TIMED_OUT} \N{EM DASH} killing worker\n"


@pytest.fixture
def function() -> Iterator[psutil.Process]:
    """A process of the small lane's function."""
    env = {**os.environ, "AWS_LAMBDA_FUNCTION_NAME": FUNCTION}
    with subprocess.Popen(["sleep", "600"], env=env) as process:
        yield psutil.Process(process.pid)
        process.kill()


@pytest.mark.parametrize(
    ("log", "frozen"),
    [
        (STARTED, True),
        ("", False),
        (STARTED + KILLED, False),
        (STARTED + KILLED + STARTED, True),
        (STARTED.replace("Small", "Bulk"), False),
    ],
    ids=["has started", "starts", "starts after another", "has, after another", "is another's log"],
)
def test_a_function_that_starts_is_not_frozen(
    log: str,
    frozen: bool,  # noqa: FBT001  a parameter of the test
    function: psutil.Process,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The local AWS would wait for it without end, and the small lane with it."""
    (tmp_path / "ministack.log").write_text(log, encoding="utf-8")
    made = storm_in(tmp_path, monkeypatch)
    assert made._freeze() is frozen
    if frozen:
        os.waitpid(function.pid, os.WUNTRACED)  # until it has stopped
    assert (function.status() == psutil.STATUS_STOPPED) is frozen


@pytest.mark.parametrize(
    ("log", "stalls"),
    [(STARTED, True), ("", False)],
    ids=["has started", "starts"],
)
def test_a_function_that_stalls_goes_on(
    log: str,
    stalls: bool,  # noqa: FBT001  a parameter of the test
    function: psutil.Process,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With less of its time: how fast the machine is does not matter to what stands still."""
    (tmp_path / "ministack.log").write_text(log, encoding="utf-8")
    meanwhile = []

    def sleep(seconds: float) -> None:
        os.waitpid(function.pid, os.WUNTRACED)
        meanwhile.append((function.status(), seconds))

    made = storm_in(tmp_path, monkeypatch)
    monkeypatch.setattr(storm, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    made.stall()
    assert [state for state, _ in meanwhile] == [psutil.STATUS_STOPPED] * stalls
    assert all(1 <= seconds < chaos.FUNCTION_TIMEOUT for _, seconds in meanwhile)
    if stalls:
        os.waitpid(function.pid, os.WCONTINUED)
    assert function.status() != psutil.STATUS_STOPPED


def storm_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Storm:
    """A storm on a stack of this process's children, with this folder."""
    resource = SimpleNamespace(type="AWS::Lambda::Function", id=FUNCTION)
    stack = SimpleNamespace(
        state=SimpleNamespace(aws=SimpleNamespace(pid=os.getpid())),
        folder=SimpleNamespace(path=folder),
        deployed=SimpleNamespace(resources={"SmallLaneFunction": resource, "Recovery": resource}),
    )
    monkeypatch.setattr(storm, "stand_still", lambda _: None)
    plan = Plan.of(1, ends=60, kills=0, stops=0, freezes=1)
    return Storm(cast("LocalStack", stack), plan, Random(1))  # noqa: S311


def test_functions_stall_until_a_small_job_was_promoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fast machine a small job ends long before its function's time does."""
    seen = Harm(timed_out=1, promoted=0, again=1, refused=1, recovered=1)
    told: list[str] = []
    to_come = iter([True, False, False, False])
    of_storm = SimpleNamespace(
        tick=lambda: next(to_come),
        stall=lambda: told.append("stalled"),
    )
    jobs = SimpleNamespace(top_up=lambda: told.append("jobs"))
    harm = iter([seen, seen, replace(seen, promoted=1)])
    monkeypatch.setattr(crash, "_harm", lambda *_: next(harm))
    monkeypatch.setattr(crash, "LOOK_S", 0)
    crash._weather(
        cast("Storm", of_storm), cast("Jobs", jobs), cast("LocalStack", None), lambda _: None
    )
    assert told == ["jobs", "jobs", "stalled", "jobs", "stalled"]
