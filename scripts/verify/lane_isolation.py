"""Bulk work in every slot does not keep a small job waiting. The control: one queue for both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from handlers.jobs.model import Lane
from handlers.jobs.states import State
from infra.settings import DeploySettings
from scripts.load.drive import Driver, Duplicate, Run
from scripts.load.ledger import Ledger
from scripts.load.measures import Dwell, busy
from scripts.load.plan import Load, Tenants, plan
from scripts.local.airports import airports_by_tenant
from scripts.local.settings import Chosen, local_settings
from scripts.local.stack import LocalStack

from .framework import Bench, Expectation, Scenario

HARM: Final = 5
"""How many times the SLO the control has to miss."""
HAND_OVER_MS: Final = 1000
"""A slot that ends one job and takes the next is not idle; longer than this it is."""
BUSY_PERCENT: Final = 80.0
"""Of the slots' time, at the least: hand-overs are a small part of it."""
ANSWER_S: Final = 1.0
WITHIN_S: Final = 120

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


def run(bench: Bench) -> Iterator[Expectation]:
    with bench.stack("lanes", settings=TWO_LANES) as stack:
        yield from lanes(bench, stack, plan(_everyone()), slo_ms(TWO_LANES))


def control(bench: Bench) -> Iterator[Expectation]:
    """The same jobs at the same pace, and the same number of slots, behind one queue."""
    with bench.stack("one-queue", settings=ONE_QUEUE, workers=2) as stack:
        yield from one_queue(bench, stack, plan(_everyone()), slo_ms(ONE_QUEUE))


SCENARIO: Final = Scenario(
    "lane-isolation",
    "Small jobs start within their SLO while every bulk slot is busy; a subject has one job.",
    run,
    control,
)


def lanes(bench: Bench, stack: LocalStack, load: Load, slo: int) -> Iterator[Expectation]:
    """Put the load on a stack with two lanes and judge it. slo: ms."""
    driver = Driver(stack, load, bench.steps)
    driver.fill()
    duplicate = driver.submit_duplicate()
    driver.submit_small()
    driver.await_small(WITHIN_S)
    seen = driver.run()
    yield from in_their_lanes(seen)
    yield within_slo(seen, slo)
    yield from bulk_was_busy(seen, driver.ledger.bulk_slots)
    yield from refused(duplicate)
    yield from own_queue_empty(driver.ledger)


def one_queue(bench: Bench, stack: LocalStack, load: Load, slo: int) -> Iterator[Expectation]:
    """Put the load on a stack with one queue for everything; it has to show the harm. slo: ms."""
    driver = Driver(stack, load, bench.steps)
    driver.fill()
    driver.submit_small()
    driver.await_small(WITHIN_S)
    seen = driver.run()
    in_bulk = sum(ran.row.lane is Lane.BULK for ran in seen.all)
    yield Expectation.equal(
        "every job went through the one queue", expected=len(seen.all), saw=in_bulk
    )
    yield Expectation.equal(
        "it has as many slots as the two lanes together",
        expected=2 * SLOTS,
        saw=driver.ledger.bulk_slots,
    )
    dwell = dwell_of_small(seen)
    yield Expectation.of(
        "p95 dwell of small jobs misses the SLO",
        expected=f"at least {HARM} x {slo} ms",
        saw=f"{dwell.p95} ms ({dwell.p95 / slo:.1f} x)",
        ok=dwell.p95 >= HARM * slo,
    )


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


def within_slo(seen: Run, slo: int) -> Expectation:
    dwell = dwell_of_small(seen)
    return Expectation.of(
        "p95 dwell of small jobs",
        expected=f"at most {slo} ms",
        saw=f"{dwell.p95} ms (p50 {dwell.p50}, max {dwell.max})",
        ok=dwell.p95 <= slo,
    )


def bulk_was_busy(seen: Run, slots: int) -> Iterator[Expectation]:
    start, end = seen.window
    measured = busy((ran.row for ran in seen.bulk), slots=slots, start=start, end=end)
    yield Expectation.of(
        f"longest time with one of {slots} bulk slots free, while small jobs came",
        expected=f"at most {HAND_OVER_MS} ms: one job handing over to the next",
        saw=f"{measured.longest_gap_ms} ms",
        ok=measured.longest_gap_ms <= HAND_OVER_MS,
    )
    yield Expectation.of(
        "work in the bulk slots' time meanwhile",
        expected=f"at least {BUSY_PERCENT:g} %",
        saw=f"{measured.share_percent:g} % of {measured.window_ms / 1000:.1f} s",
        ok=measured.share_percent >= BUSY_PERCENT,
    )
    yield Expectation.of(
        "bulk jobs waiting for a slot, at the least",
        expected="at least 1",
        saw=measured.least_waiting,
        ok=measured.least_waiting >= 1,
    )


def refused(duplicate: Duplicate) -> Iterator[Expectation]:
    yield Expectation.equal(
        "a second job on the same subject",
        expected=f"409 subject_busy, naming {duplicate.holder}",
        saw=f"{duplicate.status} {duplicate.code}, naming {duplicate.named}",
    )
    yield Expectation.of(
        "the time to that answer",
        expected=f"under {ANSWER_S:g} s",
        saw=f"{duplicate.seconds:.3f} s",
        ok=duplicate.seconds < ANSWER_S,
    )
    yield Expectation.equal(
        "what it left: jobs, messages in the small queue, dispatches",
        expected="0, 0, 0",
        saw=f"{duplicate.new_jobs}, {duplicate.small_messages}, {duplicate.dispatches}",
    )


def own_queue_empty(ledger: Ledger) -> Iterator[Expectation]:
    yield Expectation.equal(
        "messages left in the small queue", expected=0, saw=ledger.messages(Lane.SMALL)
    )


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
