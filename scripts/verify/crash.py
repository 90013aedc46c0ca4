"""Whatever dies, every record is changed exactly once, and nothing is left behind. The control: a
worker that changes records first and notes its position afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from handlers.aws.attributes import decode
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Item
from scripts.load.ledger import Ledger, RecordRow
from scripts.load.patience import Patience
from scripts.load.truth import Key, Ran, compare
from scripts.local.stack import LocalStack

from .chaos import CHAOS, LOOK_S, SMALL, TENANTS, Jobs
from .framework import Bench, Expectation, Scenario
from .site import Site, stand_still
from .storm import Plan, Storm, timed_out

SEED: Final = 20_261
WORKERS: Final = 3
STORM_S: Final = 40
"""What is planned happens in this time, and"""
STORM_LIMIT_S: Final = 600
"""what has not by itself in this one never will."""
KILLS: Final = 8
STOPS: Final = 4
FREEZES: Final = 3
ROUNDS: Final = 4
"""Kills in the control, at the least;"""
ROUNDS_LIMIT: Final = 40
"""at the most: one falls between a change and its note about every second time."""
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
        _weather(storm, jobs, stack, advance)
    with bench.steps.step("Seeing every job to its end"):
        drain(jobs, stack, storm.tick)
    storm.settle()
    jobs.look()
    stack.workers.stop()
    yield from _went_wrong(storm, jobs, stack)
    yield from all_done(jobs.ran())
    yield exactly_once(before, jobs)
    yield from nothing_left(Leftovers.of(stack))


def control(bench: Bench) -> Iterator[Expectation]:
    stack = bench.shared("crash", settings=CHAOS)
    stand_still(stack)
    here, chance = Site(stack, "careless"), Random(SEED)  # noqa: S311  repeatable
    careless = _Careless(here)
    with bench.steps.step("Killing a worker that notes its position afterwards", ROUNDS) as advance:
        for kills in range(1, ROUNDS_LIMIT + 1):
            careless.keep_working()
            moved = partial(careless.moved, careless.positions())
            [worker] = stack.workers.start(module="scripts.verify.careless")
            here.until("it works", moved)
            time.sleep(chance.uniform(0, 0.5))
            worker.kill()
            advance(1)
            if kills >= ROUNDS and careless.twice():
                break
        stack.workers.start(module="scripts.verify.careless")
        for job in careless.jobs:
            here.ended(job)
    stack.workers.stop()
    twice = careless.twice()
    yield Expectation.of(
        f"records changed more than once, after {kills} kills",
        expected="at least 1",
        saw=twice,
        ok=twice > 0,
    )


class _Careless:
    """Jobs of two slots' worth, and as many more as it takes until a kill has done harm."""

    def __init__(self, here: Site) -> None:
        self.jobs: list[Job] = []
        self._here = here
        self._ids: list[str] = []

    def keep_working(self) -> None:
        """Submit two more jobs when none is left to be killed."""
        if all(self._here.job(job).state.terminal for job in self.jobs):
            for side in ("left", "right"):
                name = f"{side}-{len(self.jobs)}"
                ids = self._here.load(CONTROL_RECORDS, name=name)
                self._ids += ids
                self.jobs.append(self._here.submit(ids, name))

    def positions(self) -> list[int]:
        return [self._here.job(job).position for job in self.jobs]

    def moved(self, since: Sequence[int]) -> bool:
        return self.positions() != since

    def twice(self) -> int:
        """Records that were changed more than once."""
        return sum(times > 1 for times in self._here.changes(self._ids))


SCENARIO: Final = Scenario(
    "crash",
    "Killed workers, timed-out functions, recovery down: every record exactly once, nothing left.",
    run,
    control,
)


# --- the run ----------------------------------------------------------------------------------


def _weather(storm: Storm, jobs: Jobs, stack: LocalStack, advance: Callable[[int], None]) -> None:
    """Until all that was planned has happened, and each kind of harm has been done. How soon that
    is, is the machine's business; where it is so fast that no small job is too long for its
    function, the functions stall."""
    start, shown = time.monotonic(), 0
    while True:
        harm = None if storm.tick() else _harm(storm, jobs, stack)
        if harm and _enough(harm):
            return
        jobs.top_up()
        if harm and not harm.promoted:
            storm.stall()
        seconds = int(time.monotonic() - start)
        advance(seconds - shown)
        shown = seconds
        if seconds > STORM_LIMIT_S:
            return  # what has not happened is told by the expectations
        time.sleep(LOOK_S)


def drain(jobs: Jobs, stack: LocalStack, tick: Callable[[], object] = lambda: None) -> None:
    """Wait until every job has ended and nothing is left, or nothing moves any more. tick: called
    at each look."""
    patience = Patience()
    while True:
        tick()
        jobs.look()
        left = Leftovers.of(stack)
        if jobs.ended == jobs.count and not left.any:
            return
        if not patience.lasts((left, {(id_, row.position) for id_, row in jobs.rows.items()})):
            return  # what is left is told by the expectations
        time.sleep(LOOK_S)


@dataclass(frozen=True)
class Harm:
    """What went wrong."""

    timed_out: int
    promoted: int
    again: int
    refused: int
    recovered: int


def _harm(storm: Storm, jobs: Jobs, stack: LocalStack) -> Harm:
    rows = [(ran.planned, ran.row) for ran in jobs.ran()]
    return Harm(
        timed_out=timed_out(stack),
        promoted=sum(row.lane is Lane.BULK and len(job.ids) <= SMALL for job, row in rows),
        again=sum(row.attempt > 1 for _, row in rows),
        refused=storm.happened.refused,
        recovered=storm.happened.recoveries,
    )


def _enough(harm: Harm) -> bool:
    return all(vars(harm).values())


def _went_wrong(storm: Storm, jobs: Jobs, stack: LocalStack) -> Iterator[Expectation]:
    """A storm in which nothing broke would show nothing."""
    happened, harm = storm.happened, _harm(storm, jobs, stack)
    yield Expectation.equal(
        f"workers killed with SIGKILL (seed {SEED})", expected=KILLS, saw=happened.killed
    )
    yield Expectation.equal(
        "exit codes of those asked to stop", expected=[0] * STOPS, saw=happened.exits
    )
    for what, times in (
        ("functions killed for taking too long", harm.timed_out),
        ("small jobs that went on in the bulk lane", harm.promoted),
        ("jobs that needed more than one attempt", harm.again),
    ):
        yield Expectation.of(what, expected="at least 1", saw=times, ok=times > 0)
    yield Expectation.of(
        "calls of recovery while it was down, and others",
        expected="at least 1 of each",
        saw=f"{harm.refused}, {harm.recovered}",
        ok=harm.refused > 0 and harm.recovered > 0,
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


def exactly_once(before: Mapping[Key, RecordRow], jobs: Jobs) -> Expectation:
    """before: the records as they were before the jobs."""
    truth = compare(before, jobs.ran(), jobs.ledger.records(TENANTS))
    return Expectation.of(
        "records that were not changed exactly once by each of their jobs",
        expected=f"0 of {truth.records}",
        saw=f"{truth.wrong} ({truth.changes} changes) {' '.join(truth.examples)}",
        ok=truth.wrong == 0 and truth.changes > 0,
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
