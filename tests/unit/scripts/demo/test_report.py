"""Each claim of the demo fails when what it says is not so."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from rich.console import Console

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.demo.report import Report, report
from scripts.demo.show import opening, show
from scripts.load.drive import Duplicate, Run
from scripts.load.ledger import JobRow, RecordRow
from scripts.load.plan import Planned, plan
from scripts.load.truth import Key, Ran

DUPLICATE = Duplicate("b2", State.QUEUED, 409, "subject_busy", "b2", 0.1, 0, 0, 0)


def ran(lane: Lane, id_: str, ids: tuple[str, ...], times: tuple[int, int, int]) -> Ran:
    created, started, finished = times
    row = JobRow(
        id=id_,
        tenant="t",
        subject=id_,
        lane=lane,
        state=State.SUCCEEDED,
        total=len(ids),
        position=len(ids),
        succeeded=len(ids),
        failed=0,
        skipped=0,
        attempt=1,
        created_at=created,
        admitted_at=created,
        started_at=started,
        finished_at=finished,
    )
    return Ran(Planned("t", id_, ids, Decimal(1)), row)


SEEN = Run(
    bulk=(
        ran(Lane.BULK, "b0", ("0", "1"), (0, 10, 9000)),
        ran(Lane.BULK, "b1", ("2", "3"), (0, 20, 9000)),
        ran(Lane.BULK, "b2", ("4", "5"), (0, 9010, 18000)),
        ran(Lane.BULK, "b3", ("6", "7"), (0, 9020, 18000)),
        ran(Lane.BULK, "b4", ("8", "9"), (0, 18010, 27000)),
    ),
    small=(
        ran(Lane.SMALL, "s0", ("0",), (1000, 1050, 1060)),
        ran(Lane.SMALL, "s1", ("2",), (1200, 1300, 1310)),
    ),
    idle=(ran(Lane.SMALL, "i0", ("4",), (-500, -490, -480)),),
)
BEFORE: dict[Key, RecordRow] = {
    ("t", str(number)): RecordRow(1, None, {"elevation": 5}) for number in range(10)
}


def after(seen: Run) -> dict[Key, RecordRow]:
    """The table as the jobs' checkpoints say."""
    found = dict(BEFORE)
    for job in seen.all:
        for id_ in job.settled:
            version = found["t", id_].version + 1
            found["t", id_] = RecordRow(version, job.row.id, {"elevation": 4 + version})
    return found


def made(
    seen: Run = SEEN,
    duplicate: Duplicate = DUPLICATE,
    cancelled: Collection[str] = (),
    table: Mapping[Key, RecordRow] | None = None,
) -> Report:
    return report(
        seen,
        duplicate,
        cancelled,
        BEFORE,
        after(seen) if table is None else table,
        bulk_slots=2,
        small_slots=2,
        slo=1000,
        seconds=1.23,
    )


def test_a_good_run_is_reported_as_one() -> None:
    good = made()
    assert good.ok
    assert all(claim.ok for claim in good.claims)
    small, bulk = good.lanes[Lane.SMALL], good.lanes[Lane.BULK]
    assert (small.jobs, small.items, small.dwell_ms.p50, small.dwell_ms.max) == (2, 2, 50, 100)
    assert (bulk.jobs, bulk.items, bulk.dwell_ms.p95) == (5, 10, 18010)
    assert (good.idle.jobs, good.idle.items, good.idle.dwell_ms.p95) == (1, 1, 10)
    assert good.bulk_slots.share_percent == 100
    assert good.exactly_once.changes == 13


def test_the_shared_queue_has_the_slots_of_both_lanes_and_says_it_is_computed() -> None:
    shared = made().shared_queue
    assert (shared.computed, shared.slots) == (True, 4)
    # Five bulk jobs and four slots: the first job of 8990 ms leaves one, 1000 ms of it are over.
    assert shared.dwell_ms_of_small.max == 7990


def of_small(**changes: object) -> Run:
    first, *others = SEEN.small
    return replace(SEEN, small=(replace(first, row=first.row.model_copy(update=changes)), *others))


def of_bulk(number: int, **changes: object) -> Run:
    jobs = list(SEEN.bulk)
    jobs[number] = replace(jobs[number], row=jobs[number].row.model_copy(update=changes))
    return replace(SEEN, bulk=tuple(jobs))


def later(ms: int) -> Run:
    """Each small job starts so much later."""
    small = []
    for job in SEEN.small:
        times = {"started_at": 1000 + ms, "finished_at": 1010 + ms}
        small.append(replace(job, row=job.row.model_copy(update=times)))
    return replace(SEEN, small=tuple(small))


def doubled() -> Report:
    table = after(SEEN)
    return made(table={**table, ("t", "5"): RecordRow(3, "b2", {"elevation": 7})})


DEFECTS: dict[str, Callable[[], Report]] = {
    "a small job in the bulk lane": lambda: made(of_small(lane=Lane.BULK)),
    "a small job that failed": lambda: made(of_small(state=State.FAILED)),
    "a small job behind the line": lambda: made(of_small(started_at=18500, finished_at=18510)),
    "a small job that never started": lambda: made(
        of_small(state=State.QUEUED, started_at=None, finished_at=None, position=0, succeeded=0)
    ),
    "a bulk slot that was free": lambda: made(of_bulk(1, started_at=8000)),
    "no backlog": lambda: made(replace(SEEN, bulk=SEEN.bulk[:2])),
    "small jobs that wait as long as in one queue": lambda: made(later(7000)),
    "a bulk job that failed": lambda: made(of_bulk(2, state=State.FAILED)),
    "a record that was skipped": lambda: made(of_bulk(2, skipped=1)),
    "a refusal that waited for the holder": lambda: made(
        duplicate=replace(DUPLICATE, holder_state=State.SUCCEEDED)
    ),
    "a duplicate that was taken": lambda: made(duplicate=replace(DUPLICATE, status=202)),
    "a job cancelled by nobody": lambda: made(of_bulk(2, state=State.CANCELLED)),
    "a cancelled job that failed": lambda: made(
        of_bulk(2, state=State.FAILED), cancelled=[SEEN.bulk[2].row.id]
    ),
    "a record changed twice": doubled,
    "nothing changed at all": lambda: made(table=BEFORE),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_claim_that_does_not_hold_fails_the_demo(defect: str) -> None:
    bad = DEFECTS[defect]()
    assert not bad.ok
    assert not all(claim.ok for claim in bad.claims)


def test_a_missed_slo_is_told_and_decides_nothing() -> None:
    seen = later(2000)
    slow = made(seen)
    assert slow.ok
    assert slow.information[0].beside == "SLO 1000 ms: missed on this machine"
    assert "SLO 1000 ms: kept" in made().information[0].beside


def test_jobs_cancelled_before_they_began_are_said_to_be() -> None:
    seen = of_bulk(
        2,
        state=State.CANCELLED,
        started_at=None,
        finished_at=9500,
        position=0,
        succeeded=0,
    )
    cut = made(seen, cancelled=[seen.bulk[2].row.id])
    assert cut.ok
    # In the computed queue it takes as long as the others of two records: it is still in the way.
    assert cut.shared_queue.dwell_ms_of_small.max > 7900
    assert any("cancelled: 1, begun by then: 0" in each.expected for each in cut.claims)


def test_a_job_that_was_begun_while_it_was_cancelled_may_end_in_the_middle() -> None:
    """Beside two busy loops three demos of five saw one, and failed."""
    half = SEEN.bulk[2].row.position // 2
    seen = of_bulk(2, state=State.CANCELLED, position=half, succeeded=half)
    cut = made(seen, cancelled=[seen.bulk[2].row.id])
    assert cut.ok
    assert any("cancelled: 1, begun by then: 1" in each.expected for each in cut.claims)


def test_a_job_that_was_done_before_it_could_be_cancelled_has_succeeded() -> None:
    assert made(cancelled=[SEEN.bulk[2].row.id]).ok


# --- shown ------------------------------------------------------------------------------------


def shown(report: Report) -> str:
    console = Console(file=io.StringIO(), width=80)
    show(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_is_shown_fits_in_80_columns_and_ends_with_what_to_try_next() -> None:
    text = shown(made())
    assert max(map(len, text.splitlines())) <= 80
    assert "Every claim holds" in text
    assert "SLO 1000 ms: kept" in text
    assert "fairlane demo --keep" in text.partition("Try next")[2]


def test_a_claim_that_fails_is_marked_with_what_was_expected() -> None:
    text = shown(made(of_bulk(2, state=State.CANCELLED)))
    assert "Claims that do not hold: 1" in text
    [line] = [each for each in text.splitlines() if "✗" in each]
    assert "jobs that succeeded: 7" in line


def test_what_is_about_to_be_shown_fits_in_80_columns_too() -> None:
    load = plan({"a": [f"{n:03}" for n in range(300)]}, small_jobs=500)
    text = opening(load, tenants=10, bulk_slots=2)
    assert max(map(len, text.splitlines())) <= 80
    assert "300 airports" in text
    assert "500 small jobs" in text
