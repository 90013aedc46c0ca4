"""The demo's run on the tests' stack, over records of its own tenants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fairlane_client import Client
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.demo.keep import kept
from scripts.demo.report import Report
from scripts.demo.run import run
from scripts.load.plan import Load, plan
from scripts.local import airports
from scripts.local.airports import Fields
from scripts.local.stack import LocalStack
from scripts.local.state import StackFolder
from scripts.local.steps import Steps

TENANTS = ("demo-one", "demo-two", "demo-three", "demo-four")
EACH = 2900
PASSES = 2
"""Few long jobs instead of many short ones: between two jobs a slot stands idle for a moment, and
the demo claims of small jobs that they came while every slot worked."""
SMALL_JOBS = 8
IDLE_JOBS = 3
PACE = 0.5
"""Seconds between two small jobs: they come all along the load, not within one moment of it."""


@pytest.fixture(scope="module")
def records(stack: LocalStack) -> Mapping[str, Mapping[str, Fields]]:
    """Airports once more, for tenants nobody else has."""
    some = dict(list(airports.airports_by_tenant()["europe"].items())[:EACH])
    records = dict.fromkeys(TENANTS, some)
    airports.load(stack.clients.dynamodb, stack.deployed.outputs["RecordsTable"], tenants=records)
    return records


@pytest.fixture(scope="module")
def load(records: Mapping[str, Mapping[str, Fields]]) -> Load:
    tenants = {tenant: list(ids) for tenant, ids in records.items()}
    return plan(tenants, passes=PASSES, small_jobs=SMALL_JOBS, idle_jobs=IDLE_JOBS, pace=PACE)


@pytest.fixture(scope="module")
def report(stack: LocalStack, load: Load, records: Mapping[str, Mapping[str, Fields]]) -> Report:
    tenants = {tenant: list(ids) for tenant, ids in records.items()}
    return run(stack, tenants, load, Steps(quiet=True), slo=1000, started=time.monotonic())


def test_what_is_claimed_holds_on_any_machine(report: Report) -> None:
    assert [claim for claim in report.claims if not claim.ok] == []


def test_the_demo_holds_when_all_its_claims_do(report: Report) -> None:
    assert report.ok is all(claim.ok for claim in report.claims)


def test_every_record_was_compared(report: Report) -> None:
    """Bulk jobs that were cancelled before they began have changed nothing; one that a worker
    began at that moment has changed as much as it says."""
    truth, bulk = report.exactly_once, report.lanes[Lane.BULK]
    assert truth.records == EACH * len(TENANTS)
    assert truth.changes == bulk.items + (SMALL_JOBS + IDLE_JOBS) * 10


def test_both_lanes_are_counted(report: Report) -> None:
    small, bulk = report.lanes[Lane.SMALL], report.lanes[Lane.BULK]
    assert (small.jobs, small.items) == (SMALL_JOBS, SMALL_JOBS * 10)
    assert bulk.jobs >= PASSES * len(TENANTS)
    assert EACH * bulk.slots <= bulk.items <= EACH * bulk.jobs
    assert (report.idle.jobs, report.idle.items) == (IDLE_JOBS, IDLE_JOBS * 10)
    assert report.shared_queue.slots == small.slots + bulk.slots
    assert report.shared_queue.computed


def test_a_duplicate_was_refused_by_the_api(report: Report) -> None:
    assert (report.duplicate.status, report.duplicate.code) == (409, "subject_busy")
    assert report.duplicate.named == report.duplicate.holder


@pytest.mark.usefixtures("report")
def test_the_two_curl_lines_work_as_printed(stack: LocalStack, load: Load) -> None:
    first = load.small[0]
    left = kept(stack, first.tenant, first.ids)
    listed, created = (
        json.loads(subprocess.run(["sh", "-c", line], check=True, capture_output=True).stdout)
        for line in left.curl
    )
    assert len(listed["jobs"]) == 3
    client = Client(left.api, left.token)
    assert client.wait(created["id"], timeout=600).state == State.SUCCEEDED
    client.close()


# --- the command ------------------------------------------------------------------------------

PROGRAM = """
import pathlib, sys
from scripts.load import own
own.up.__kwdefaults__["root"] = pathlib.Path(sys.argv.pop(1))
from fairlane_client.cli import main
main()
"""
"""``fairlane`` with its own stacks in the tests' folder."""


@pytest.fixture
def demo(stacks: Path) -> Iterator[tuple[subprocess.Popen[str], StackFolder]]:
    """``fairlane demo --keep --json``, and where its stack keeps its state."""
    folder = StackFolder("demo", stacks)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(stacks), "demo", "--keep", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as command:
        try:
            yield command, folder
        finally:
            command.kill()
            command.wait()
            LocalStack("demo", root=stacks).down()


def test_an_interrupted_demo_leaves_nothing(
    demo: tuple[subprocess.Popen[str], StackFolder],
) -> None:
    """Beside the tests' own stack, in the middle of its jobs, and though it was to be kept."""
    command, folder = demo
    while not (state := folder.read()).up:
        assert command.poll() is None
        time.sleep(0.1)
    assert state.aws is not None
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does it
    out, _ = command.communicate()
    assert command.returncode != 0
    assert out.strip() == ""
    assert [process for process in (state.aws, *state.workers) if process.alive()] == []
    assert not folder.path.exists()
