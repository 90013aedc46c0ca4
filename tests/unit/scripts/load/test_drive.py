"""While small jobs come, bulk jobs stand in line however fast they are worked through."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import cast

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load import drive
from scripts.load.drive import Driver
from scripts.load.ledger import JobRow
from scripts.load.plan import Planned, plan
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps

BULK_SLOTS, SMALL_SLOTS = 2, 2
EACH = 200


@dataclass
class Lanes:
    """A stack whose bulk workers have begun, at each look, so many jobs more."""

    begins: int
    submitted: list[str] = field(default_factory=list)
    begun: int = 0
    lines: list[int] = field(default_factory=list)
    """How many bulk jobs stood in line at each look."""
    since_ms: int = 1
    """When those began."""
    bulk_slots: int = BULK_SLOTS
    small_slots: int = SMALL_SLOTS

    def jobs(self) -> dict[str, JobRow]:
        self.begun = min(self.begun + self.begins, len(self.submitted))
        self.lines.append(len(self.submitted) - self.begun)
        return {id_: self.row(id_, number) for number, id_ in enumerate(self.submitted)}

    def row(self, id_: str, number: int) -> JobRow:
        begun = number < self.begun
        return JobRow(
            id=id_,
            tenant="t",
            subject=id_,
            lane=Lane.BULK,
            state=State.RUNNING if begun else State.QUEUED,
            position=EACH if number < self.begun - BULK_SLOTS else 0,
            succeeded=0,
            failed=0,
            skipped=0,
            attempt=1,
            created_at=0,
            admitted_at=0,
            started_at=self.since_ms if begun else None,
        )


@pytest.mark.parametrize("begins", [0, 1, 2])
def test_the_line_lasts_while_small_jobs_come(monkeypatch: pytest.MonkeyPatch, begins: int) -> None:
    load = plan({"a": [f"{n:04}" for n in range(400)]}, part=EACH, passes=4, small_jobs=60, pace=0)
    lanes = Lanes(begins)
    driver = Driver(cast("LocalStack", None), load, Steps(quiet=True))
    monkeypatch.setattr(drive, "LINE_S", 0)
    monkeypatch.setattr(driver, "ledger", lanes)

    def submit(planned: Planned) -> str:
        if planned in load.small:
            return planned.subject
        lanes.submitted.append(planned.subject)
        return planned.subject

    monkeypatch.setattr(driver, "_submit", submit)
    for planned in load.bulk:
        driver._bulk.append((planned, submit(planned)))
    driver.submit_small()
    assert min(lanes.lines) >= 1
    if begins:
        assert len(set(lanes.submitted)) == len(lanes.submitted) > len(load.bulk)


@pytest.mark.parametrize(("seconds", "pace"), [(1000, 0.2), (4, 0.1)])
def test_small_jobs_come_before_one_queue_would_have_no_line(
    monkeypatch: pytest.MonkeyPatch, seconds: int, pace: float
) -> None:
    """4 of 14 bulk jobs took so long; in one queue the others would take 1.25 times as long."""
    load = plan({"a": [f"{n:04}" for n in range(14 * EACH)]}, part=EACH, passes=1)
    lanes = Lanes(0, begun=4 + BULK_SLOTS, since_ms=round((time.time() - seconds) * 1000))
    driver = Driver(cast("LocalStack", None), load, Steps(quiet=True))
    monkeypatch.setattr(driver, "ledger", lanes)
    for planned in load.bulk:
        lanes.submitted.append(planned.subject)
        driver._bulk.append((planned, planned.subject))
    assert driver._pace() == pytest.approx(pace, rel=0.2)
