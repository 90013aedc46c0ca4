"""The report of a job as a file."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from typing import Any

import pytest

from handlers.jobs.results.items import ItemOutcome, Unfinished
from handlers.jobs.results.report import COLUMNS, Report, ReportFormat, write_report
from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import Transaction, execute
from handlers.jobs.words.job import Job
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Put
from handlers.testing.world import MemoryWorld
from tests.support.results import a_job

ALL = tuple(ItemOutcome)


def report_of(world: MemoryWorld, job: Job, form: ReportFormat) -> tuple[Report, str]:
    report = write_report(world, job, ALL, form, lambda: False)
    content = world.payloads.read(report.name, 0, report.bytes)
    assert (len(content), hashlib.sha256(content).hexdigest()) == (report.bytes, report.sha256)
    return report, content.decode()


def test_a_csv_has_a_head_and_a_row_for_each_record_that_did_not_go_well() -> None:
    world, job = a_job(failing=5, chunk=2)
    report, text = report_of(world, job, ReportFormat.CSV)
    head, *rows = csv.reader(io.StringIO(text))
    assert tuple(head) == COLUMNS
    assert [row[:2] for row in rows] == [["failed", f"r{n:04}"] for n in range(5)]
    assert report.count == 5


def test_jsonl_has_a_line_for_each() -> None:
    world, job = a_job(failing=5, chunk=2)
    _, text = report_of(world, job, ReportFormat.JSONL)
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["id"] for line in lines] == [f"r{n:04}" for n in range(5)]
    assert all(line["reason"] and "sink" not in line for line in lines)


def test_a_name_shows_one_content_for_ever() -> None:
    world, job = a_job(failing=1, chunk=2)
    assert job.state.terminal
    names = {report_of(world, job, ReportFormat.CSV)[0].name for _ in range(2)}
    assert len(names) == 1
    running = job.model_copy(update={"state": State.RUNNING})
    names |= {report_of(world, running, ReportFormat.CSV)[0].name for _ in range(2)}
    assert len(names) == 3


def test_without_time_no_file_is_left() -> None:
    world, job = a_job(failing=1, chunk=2)
    with pytest.raises(Unfinished):
        write_report(world, job, ALL, ReportFormat.CSV, lambda: True)
    assert not world.payloads.names()


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "=cmd|' /C calc'!A0", "＝1", "'quoted")  # noqa: RUF001  a sign of Japanese keyboards


def cells(id_: str, reason: str) -> tuple[list[str], Any]:
    """One record in a CSV and in a JSON Lines report."""
    world, job = a_job(failing=1, chunk=1)
    key = control_table.outcome_key(job.id, "failed", 0)
    row = {"failed": [{"id": id_, "reason": reason}]}
    execute(world, Transaction("test", {"row": Put(key, row)}))
    _, text = report_of(world, job, ReportFormat.CSV)
    _, cells = csv.reader(io.StringIO(text, newline=""))
    _, exact = report_of(world, job, ReportFormat.JSONL)
    return cells, json.loads(exact)


@pytest.mark.parametrize("text", FORMULAS)
def test_c95_no_cell_of_a_csv_is_a_formula_and_jsonl_is_exact(text: str) -> None:
    shown, exact = cells(text, text)
    assert shown[1:3] == ["'" + text] * 2
    assert (exact["id"], exact["reason"]) == (text, text)


@pytest.mark.parametrize("text", ["007", "a=1", "r-1", "", "1e5", "é", "a\tb"])
def test_c95_other_cells_are_as_they_are(text: str) -> None:
    shown, exact = cells(text, text)
    assert shown[1:3] == [text] * 2
    assert exact["id"] == text
