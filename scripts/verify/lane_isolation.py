"""Bulk work in every slot does not keep a small job waiting. The control: one queue for both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from infra.settings import DeploySettings
from scripts.load.drive import Driver, Duplicate, Run
from scripts.load.ledger import Ledger
from scripts.load.measures import Dwell, Overtaking, busy, overtaking
from scripts.load.plan import Load, Tenants, plan
from scripts.load.truth import Ran
from scripts.local.airports import airports_by_tenant
from scripts.local.settings import Chosen, local_settings
from scripts.local.stack import LocalStack

from .framework import Bench, Expectation, Information, Scenario, Seen

MET_PERCENT: Final = 90
"""Of the small jobs have to come while bulk jobs stand in line: they have to get past something."""
WORKED_PERCENT: Final = 50
"""Of the small jobs have to come while every bulk slot works; a slot that hands over is free."""
OVERTAKEN_PERCENT: Final = 50
"""Of the bulk jobs in line a small job gets past all but those that are begun while it is on its
way; in one queue it gets past none."""
LATE_PERCENT: Final = 5
"""Of the small jobs may start after the whole line they met: as many as a p95 leaves out."""
GAIN: Final = 2
"""How many times longer a p95 of dwell one queue has to make, at the least."""

NAME: Final = "lane-isolation"
SLOTS: Final = 2
"""Of each lane; the control's one pool has as many as both together."""
TWO_LANES: Final[Chosen] = {
    "small_lane": {"maximum_concurrency": SLOTS},
    "bulk_lane": {"slots": SLOTS},
}
ONE_QUEUE: Final[Chosen] = {
    "small_lane": {"maximum_concurrency": SLOTS},
    "bulk_lane": {"slots": SLOTS},
    "limits": {
        "small_max_items": 1,  # so every job of this load is for the bulk queue
        "tenant_slots_bulk": 1000,  # and is in it at once: a plain queue holds nothing back
    },
}


def run(bench: Bench) -> Iterator[Seen]:
    with bench.stack("lanes", settings=TWO_LANES) as stack:
        yield from lanes(bench, stack, plan(_everyone()), slo_ms(TWO_LANES))


def control(bench: Bench) -> Iterator[Seen]:
    """The same jobs at the same pace, and the same number of slots, behind one queue."""
    with bench.stack("one-queue", settings=ONE_QUEUE, workers=2) as stack:
        yield from one_queue(bench, stack, plan(_everyone()), slo_ms(ONE_QUEUE))


SCENARIO: Final = Scenario(
    NAME,
    "Small jobs start before the bulk jobs in line; a subject has one job.",
    run,
    control,
)


def lanes(bench: Bench, stack: LocalStack, load: Load, slo: int) -> Iterator[Seen]:
    """Put the load on a stack with two lanes and judge it. slo: ms."""
    driver = Driver(stack, load, bench.steps)
    driver.submit_idle()
    driver.fill()
    duplicate = driver.submit_duplicate()
    driver.submit_small()
    driver.await_small()
    seen, slots = driver.run(), driver.ledger.bulk_slots
    bench.dwells[NAME] = dwell_of_small(seen)
    yield from in_their_lanes(seen)
    yield from bulk_was_busy(seen, slots)
    yield from overtook(seen, slots)
    yield from refused(duplicate)
    yield own_queue_empty(driver.ledger)
    yield from times(seen, duplicate, slots=slots, slo=slo)


def one_queue(bench: Bench, stack: LocalStack, load: Load, slo: int) -> Iterator[Seen]:
    """Put the load on a stack with one queue for everything; it has to show the harm. slo: ms."""
    driver = Driver(stack, load, bench.steps)
    driver.fill()
    driver.submit_small()
    driver.await_small()
    seen, slots = driver.run(), driver.ledger.bulk_slots
    in_bulk = sum(ran.row.lane is Lane.BULK for ran in seen.all)
    yield Expectation.equal(
        "every job went through the one queue", expected=len(seen.all), saw=in_bulk
    )
    yield Expectation.equal(
        "it has as many slots as the two lanes together", expected=2 * SLOTS, saw=slots
    )
    yield from bulk_was_busy(seen, slots)
    yield from (claim.contrary() for claim in overtook(seen, slots))
    dwell = dwell_of_small(seen)
    if (with_lanes := bench.dwells.get(NAME)) is not None:
        yield Expectation.of(
            "p95 dwell of small jobs, against the run with two lanes",
            expected=f"at least {GAIN} x",
            saw=f"{ratio(dwell.p95, with_lanes.p95)} x: {dwell.p95} ms, {with_lanes.p95} ms",
            ok=dwell.p95 >= GAIN * with_lanes.p95,
        )
    yield against_slo(dwell, slo)


# --- judgement --------------------------------------------------------------------------------


def in_their_lanes(seen: Run) -> Iterator[Expectation]:
    wrong = sum(ran.row.lane is not Lane.SMALL for ran in seen.small) + sum(
        ran.row.lane is not Lane.BULK for ran in seen.bulk
    )
    yield Expectation.equal("jobs in the other lane", expected=0, saw=wrong)
    succeeded = sum(
        ran.row.state is State.SUCCEEDED and ran.row.succeeded == ran.row.total
        for ran in seen.small
    )
    yield Expectation.equal(
        "small jobs that changed all their records", expected=len(seen.small), saw=succeeded
    )


def bulk_was_busy(seen: Run, slots: int) -> Iterator[Expectation]:
    """There was something to get past: otherwise the order of starts would show nothing."""
    met = order(seen, slots)
    yield Expectation.of(
        "small jobs that came while bulk jobs stood in line",
        expected=f"at least {MET_PERCENT} % of {met.came}",
        saw=met.met_a_line,
        ok=100 * met.met_a_line >= MET_PERCENT * met.came,
    )
    yield Expectation.of(
        f"small jobs that came while all {slots} bulk slots worked",
        expected=f"at least {WORKED_PERCENT} % of {met.came}",
        saw=met.all_slots,
        ok=100 * met.all_slots >= WORKED_PERCENT * met.came,
    )


def overtook(seen: Run, slots: int) -> Iterator[Expectation]:
    """A small job starts before the bulk jobs that stood in line when it came."""
    met = order(seen, slots)
    yield Expectation.of(
        "bulk jobs in line that a small job started before",
        expected=f"at least {OVERTAKEN_PERCENT} %",
        saw=f"{met.percent:g} % ({met.overtaken} of {met.ahead})",
        ok=met.percent >= OVERTAKEN_PERCENT,
    )
    yield Expectation.of(
        "small jobs that started after the whole line",
        expected=f"at most {LATE_PERCENT} % of {met.met_a_line}",
        saw=met.passed_none,
        ok=met.met_a_line > 0 and 100 * met.passed_none <= LATE_PERCENT * met.met_a_line,
    )


def refused(duplicate: Duplicate) -> Iterator[Expectation]:
    yield Expectation.equal(
        "a second job on the same subject",
        expected=f"409 subject_busy, naming {duplicate.holder}",
        saw=f"{duplicate.status} {duplicate.code}, naming {duplicate.named}",
    )
    yield Expectation.of(
        "the job that has the subject, when that answer had come",
        expected="not ended: nobody waited for it",
        saw=duplicate.holder_state.value,
        ok=not duplicate.holder_state.terminal,
    )
    yield Expectation.equal(
        "what it left: jobs, messages in the small queue, dispatches",
        expected="0, 0, 0",
        saw=f"{duplicate.new_jobs}, {duplicate.small_messages}, {duplicate.dispatches}",
    )


def own_queue_empty(ledger: Ledger) -> Expectation:
    return Expectation.equal(
        "messages left in the small queue", expected=0, saw=ledger.messages(Lane.SMALL)
    )


# --- what is only told --------------------------------------------------------------------------


def times(seen: Run, duplicate: Duplicate, *, slots: int, slo: int) -> Iterator[Information]:
    """Absolute times, which are the machine's as much as Fairlane's. slo: ms."""
    loaded, idle = dwell_of_small(seen), Dwell.of(map(_waited, seen.idle))
    yield against_slo(loaded, slo)
    yield Information(
        what="dwell of small jobs beside bulk work, against idle",
        beside=f"idle: p50 {idle.p50} ms, p95 {idle.p95} ms",
        saw=f"p50 {ratio(loaded.p50, idle.p50)} x, p95 {ratio(loaded.p95, idle.p95)} x",
    )
    start, end = seen.window
    measured = busy((ran.row for ran in seen.bulk), slots=slots, start=start, end=end)
    yield Information(
        what="work in the bulk slots' time meanwhile",
        beside=f"longest with one free: {measured.longest_gap_ms} ms",
        saw=f"{measured.share_percent:g} % of {measured.window_ms / 1000:.1f} s",
    )
    yield Information(
        what="time to the answer about the second job", beside="", saw=f"{duplicate.seconds:.3f} s"
    )


def against_slo(dwell: Dwell, slo: int) -> Information:
    return Information(
        what="p95 dwell of small jobs",
        beside=f"SLO {slo} ms: {'kept' if dwell.p95 <= slo else 'missed'} on this machine",
        saw=f"{dwell.p95} ms (p50 {dwell.p50}, max {dwell.max})",
    )


def waits_less(seen: Run) -> Expectation:
    """Small jobs against the bulk jobs that stood in line while they came: in one queue a small job
    waits as long as the line before it."""
    start, _ = seen.window
    line = [_waited(ran) for ran in seen.bulk if (ran.row.started_at or start + 1) > start]
    small = dwell_of_small(seen)
    theirs = Dwell.of(line).p50 if line else 0
    return Expectation.of(
        "p50 wait of the bulk jobs in line, against the small jobs' p95",
        expected=f"at least {GAIN} x",
        saw=f"{ratio(theirs, small.p95)} x: {theirs} ms, {small.p95} ms",
        ok=theirs >= GAIN * small.p95,
    )


def ratio(of: int, to: int) -> str:
    return f"{of / max(to, 1):.1f}"


def order(seen: Run, slots: int) -> Overtaking:
    return overtaking((ran.row for ran in seen.small), (ran.row for ran in seen.bulk), slots=slots)


def _waited(ran: Ran) -> int:
    """Until it started; until its end when it never did."""
    row = ran.row
    if row.dwell_ms is not None:
        return row.dwell_ms
    return (row.finished_at or row.created_at) - row.created_at


def dwell_of_small(seen: Run) -> Dwell:
    """A job that never started counts as waiting from its creation on: none is left out."""
    _, end = seen.window
    return Dwell.of(
        end - ran.row.created_at if ran.row.dwell_ms is None else ran.row.dwell_ms
        for ran in seen.small
    )


def slo_ms(chosen: Chosen) -> int:
    """The p95 of dwell that the deployment with these settings promises (and alarms on)."""
    return DeploySettings.read(local_settings(1, chosen)).small_lane.dwell_slo_ms


def _everyone() -> Tenants:
    return {tenant: list(airports) for tenant, airports in airports_by_tenant().items()}
