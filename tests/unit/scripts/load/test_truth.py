"""Comparing the table with the jobs finds every kind of lost, doubled or foreign write."""

from __future__ import annotations

from decimal import Decimal

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Item
from scripts.load.ledger import JobRow, RecordRow
from scripts.load.plan import Planned
from scripts.load.truth import Key, Ran, compare

ONE, TWO, THREE = ("t", "1"), ("t", "2"), ("t", "3")


def record(
    elevation: Decimal | int, version: int = 1, last: str | None = None, **more: str
) -> RecordRow:
    fields: Item = {"elevation": elevation, "version": version, "name": "x", **more}
    if last is not None:
        fields = {**fields, "last_job_id": last}
    return RecordRow(version, last, fields)


def ran(job_id: str, ids: tuple[str, ...], adds: str, position: int | None = None) -> Ran:
    settled = len(ids) if position is None else position
    return Ran(
        Planned("t", job_id, ids, Decimal(adds)),
        JobRow(
            id=job_id,
            tenant="t",
            subject=job_id,
            lane=Lane.BULK,
            state=State.SUCCEEDED if settled == len(ids) else State.CANCELLED,
            total=len(ids),
            position=settled,
            succeeded=settled,
            failed=0,
            skipped=0,
            attempt=1,
            created_at=0,
        ),
    )


BEFORE: dict[Key, RecordRow] = {key: record(100) for key in (ONE, TWO, THREE)}
JOBS = (ran("a", ("1", "2"), "1"), ran("b", ("2",), "0.001"))
AFTER: dict[Key, RecordRow] = {
    ONE: record(101, 2, "a"),
    TWO: record(Decimal("101.001"), 3, "b"),
    THREE: record(100),
}


def test_a_table_as_the_jobs_say_is_right() -> None:
    truth = compare(BEFORE, JOBS, AFTER)
    assert (truth.records, truth.changed, truth.changes, truth.wrong) == (3, 2, 3, 0)


def test_only_what_a_stopped_job_settled_counts() -> None:
    jobs = (ran("a", ("1", "2"), "1", position=1),)
    after = {ONE: record(101, 2, "a"), TWO: record(100), THREE: record(100)}
    assert compare(BEFORE, jobs, after).wrong == 0


@pytest.mark.parametrize(
    ("key", "found", "why"),
    [
        (ONE, record(100), "version 1, expected 2"),
        (ONE, record(102, 3, "a"), "version 3, expected 2"),
        (ONE, record(102, 2, "a"), "elevation is 102, expected 101"),
        (ONE, record(101, 2, "b"), "marked by job b, which did not list it"),
        (ONE, record(101, 2, "a", name="y"), "name is y, expected x"),
        (ONE, record(101, 2, "a", city="y"), "city is y, expected None"),
        (TWO, record(Decimal("100.001"), 3, "b"), "elevation is 100.001, expected 101.001"),
        (THREE, record(101, 2, "a"), "version 2, expected 1"),
        (THREE, record(101), "elevation is 101, expected 100"),
        (THREE, record(100, 1, "a"), "marked by job a, which did not list it"),
    ],
)
def test_a_record_that_differs_is_found(key: Key, found: RecordRow, why: str) -> None:
    truth = compare(BEFORE, JOBS, {**AFTER, key: found})
    assert truth.wrong == 1
    assert truth.examples == (f"{'/'.join(key)}: {why}",)


def test_a_record_that_is_gone_or_new_is_found() -> None:
    gone = {key: row for key, row in AFTER.items() if key != THREE}
    assert compare(BEFORE, JOBS, gone).examples == ("t/3: it is gone",)
    new = {**AFTER, ("t", "4"): record(1)}
    assert compare(BEFORE, JOBS, new).examples == ("t/4: it was not there before",)
