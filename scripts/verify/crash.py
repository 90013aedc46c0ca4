"""Whatever dies, every record is changed exactly once, and nothing is left behind. The control: a
worker that changes records first and notes its position afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from handlers.aws.attributes import decode
from handlers.jobs.model import Job, Lane
from handlers.jobs.states import State
from handlers.jobs.store import Item
from scripts.load.ledger import Ledger
from scripts.load.truth import Ran, compare
from scripts.local.stack import LocalStack

from .chaos import CHAOS, LOOK_S, SMALL, TENANTS, Jobs, Plan, Storm, timed_out
from .framework import Bench, Expectation, Scenario
from .site import Site, stand_still

SEED: Final = 20_261
WORKERS: Final = 3
STORM_S: Final = 40
KILLS: Final = 8
STOPS: Final = 4
FREEZES: Final = 3
DRAINED_S: Final = 90
WITHIN: Final = 60
ROUNDS: Final = 4
CONTROL_RECORDS: Final = 300
"""Of each of two jobs."""


def run(bench: Bench) -> Iterator[Expectation]:
    stack = bench.shared("crash", settings=CHAOS)
    chance = Random(SEED)  # noqa: S311  repeatable is what it is for
    jobs = Jobs(stack, chance)
    jobs.load()
    before = jobs.ledger.records(TENANTS)
    stack.workers.start(WORKERS)
    plan = Plan.of(SEED, ends=STORM_S, kills=KILLS, stops=STOPS, freezes=FREEZES)
    storm = Storm(stack, plan, chance)
    with bench.steps.step(f"Killing, stopping and timing out for {STORM_S} s", STORM_S) as advance:
        _weather(storm, jobs, advance)
    with bench.steps.step("Seeing every job to its end"):
        _drain(storm, jobs, stack)
    storm.settle()
    jobs.look()
    stack.workers.stop()
    yield from _went_wrong(storm, jobs, stack)
    yield from all_done(jobs.ran())
    truth = compare(before, jobs.ran(), jobs.ledger.records(TENANTS))
    yield Expectation.of(
        "records that were not changed exactly once by each of their jobs",
        expected=f"0 of {truth.records}",
        saw=f"{truth.wrong} ({truth.changes} changes) {' '.join(truth.examples)}",
        ok=truth.wrong == 0 and truth.changes > 0,
    )
    yield from nothing_left(Leftovers.of(stack))


def control(bench: Bench) -> Iterator[Expectation]:
    stack = bench.shared("crash", settings=CHAOS)
    stand_still(stack)
    here, chance = Site(stack, "careless"), Random(SEED)  # noqa: S311  repeatable
    # Two slots' worth, long enough to be killed again and again.
    ids = {subject: here.load(CONTROL_RECORDS, name=subject) for subject in ("left", "right")}
    jobs = [here.submit(each, subject) for subject, each in ids.items()]
    with bench.steps.step("Killing a worker that notes its position afterwards", ROUNDS) as advance:
        for _ in range(ROUNDS):
            positions = [here.job(job).position for job in jobs]
            [worker] = stack.workers.start(module="scripts.verify.careless")
            here.until("it works", partial(_moved, here, jobs, positions), WITHIN)
            time.sleep(chance.uniform(0, 0.5))
            worker.kill()
            advance(1)
        stack.workers.start(module="scripts.verify.careless")
        for job in jobs:
            here.ended(job, WITHIN)
    stack.workers.stop()
    changes = [times for each in ids.values() for times in here.changes(each)]
    yield Expectation.of(
        f"records changed more than once, after {ROUNDS} kills",
        expected="at least 1",
        saw=sum(times > 1 for times in changes),
        ok=any(times > 1 for times in changes),
    )


SCENARIO: Final = Scenario(
    "crash",
    "Killed workers, timed-out functions, recovery down: every record exactly once, nothing left.",
    run,
    control,
)


def _moved(here: Site, jobs: Sequence[Job], positions: Sequence[int]) -> bool:
    return [here.job(job).position for job in jobs] != positions


# --- the run ----------------------------------------------------------------------------------


def _weather(storm: Storm, jobs: Jobs, advance: Callable[[int], None]) -> None:
    start, shown = time.monotonic(), 0
    while storm.tick():
        jobs.top_up()
        seconds = int(time.monotonic() - start)
        advance(seconds - shown)
        shown = seconds
        time.sleep(LOOK_S)


def _drain(storm: Storm, jobs: Jobs, stack: LocalStack) -> None:
    deadline = time.monotonic() + DRAINED_S
    while True:
        storm.tick()
        jobs.look()
        if jobs.ended == jobs.count and not Leftovers.of(stack).any:
            return
        if time.monotonic() > deadline:
            return  # what is left is told by the expectations
        time.sleep(LOOK_S)


def _went_wrong(storm: Storm, jobs: Jobs, stack: LocalStack) -> Iterator[Expectation]:
    """A storm in which nothing broke would show nothing."""
    happened, rows = storm.happened, [ran.row for ran in jobs.ran()]
    yield Expectation.equal(
        f"workers killed with SIGKILL (seed {SEED})", expected=KILLS, saw=happened.killed
    )
    yield Expectation.equal(
        "exit codes of those asked to stop", expected=[0] * STOPS, saw=happened.exits
    )
    times = timed_out(stack)
    yield Expectation.of(
        "functions killed for taking too long", expected="at least 1", saw=times, ok=times > 0
    )
    promoted = sum(
        ran.row.lane is Lane.BULK and len(ran.planned.ids) <= SMALL for ran in jobs.ran()
    )
    yield Expectation.of(
        "small jobs that went on in the bulk lane",
        expected="at least 1",
        saw=promoted,
        ok=promoted > 0,
    )
    again = sum(row.attempt > 1 for row in rows)
    yield Expectation.of(
        "jobs that needed more than one attempt", expected="at least 1", saw=again, ok=again > 0
    )
    yield Expectation.of(
        "calls of recovery while it was down, and others",
        expected="at least 1 of each",
        saw=f"{happened.refused}, {happened.recoveries}",
        ok=happened.refused > 0 and happened.recoveries > 0,
    )


# --- judgement --------------------------------------------------------------------------------


def all_done(ran: Sequence[Ran]) -> Iterator[Expectation]:
    """Every job has succeeded with every one of its records."""
    done = sum(
        job.row.state is State.SUCCEEDED
        and job.row.total == job.row.position == job.row.succeeded == len(job.planned.ids)
        for job in ran
    )
    yield Expectation.equal(
        "jobs that succeeded with all their records",
        expected=f"{len(ran)} of {len(ran)}",
        saw=f"{done} of {len(ran)}",
    )


@dataclass(frozen=True)
class Leftovers:
    """What is still there of jobs that should be over."""

    subjects: int
    """Held by somebody."""
    slots: int
    """Of tenants, taken or waited for."""
    dispatches: int
    messages: int
    """Waiting or in flight, in both lanes."""
    dead_letters: int

    @property
    def any(self) -> bool:
        return any((self.subjects, self.slots, self.dispatches, self.messages, self.dead_letters))

    @classmethod
    def of(cls, stack: LocalStack) -> Leftovers:
        ledger = Ledger(stack)
        items = [*_control_items(stack, ledger.settings.control_table)]
        return cls(
            subjects=sum(i["sk"] == "LEASE" and "job_id" in i for i in items),
            slots=sum(
                abs(int(str(i.get(name, 0))))
                for i in items
                if str(i["sk"]).startswith("SLOTS#")
                for name in ("in_flight", "held")
            ),
            dispatches=sum(str(i["sk"]).startswith("DISPATCH#") for i in items),
            messages=sum(ledger.messages(lane) for lane in Lane),
            dead_letters=_dead_letters(stack),
        )


def nothing_left(left: Leftovers) -> Iterator[Expectation]:
    yield Expectation.equal("subjects that are not free", expected=0, saw=left.subjects)
    yield Expectation.equal("tenants' slots that are not free", expected=0, saw=left.slots)
    yield Expectation.equal(
        "dispatches, messages, dead letters left",
        expected=(0, 0, 0),
        saw=(left.dispatches, left.messages, left.dead_letters),
    )


def _control_items(stack: LocalStack, table: str) -> Iterator[Item]:
    scan = stack.clients.dynamodb.get_paginator("scan")
    for page in scan.paginate(TableName=table, ConsistentRead=True):
        yield from (decode(item) for item in page["Items"])


def _dead_letters(stack: LocalStack) -> int:
    found = 0
    for name in ("SmallDeadLettersUrl", "BulkDeadLettersUrl"):
        answer = stack.clients.sqs.get_queue_attributes(
            QueueUrl=stack.deployed.outputs[name],
            AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        )
        found += sum(map(int, answer["Attributes"].values()))
    return found
