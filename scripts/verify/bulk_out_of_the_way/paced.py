"""Part 1: with every bulk slot busy, small jobs wait little longer than alone. The control: no
governor.

What is measured: the dwell of small jobs that come one after another, in rounds of one stack: idle
lanes, beside bulk work with the governor, beside bulk work without it, and idle lanes again. The
workers start anew for each stretch, with the deployed settings or with ``pace.on: false``. Judged
are medians of ratios within a round, so a machine that becomes slower meanwhile spoils one round at
the most. A round shows something only when the bulk slots worked all the time and the database,
without the governor, was what they waited for; another round takes the place of one that did not.

The stack's database works on one request after the other, as a partition does with its capacity.
Database, workers and functions share the processors here, so a small job meets bulk work more often
than on AWS.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.job import Lane
from handlers.jobs.words.pace import PaceSettings
from scripts.load.ledger import JobRow
from scripts.load.measures import Dwell
from scripts.verify.framework import Bench, Expectation, Information, Seen

from . import slow_bulk
from .coming import Coming
from .load_of import DatabaseLoad
from .town import Town, town

SLOTS: Final = 3
BULK: Final = tuple(f"bulk-{number}" for number in range(5))
"""More tenants than slots, with one job at a time in each: a message always waits for a free slot,
and no two jobs are on the same records."""
EACH: Final = 3000
"""Records of a bulk job."""
LEFT: Final = 4
"""Jobs of each bulk tenant that have not ended when a stretch begins: more than it works off."""
SMALL_JOBS: Final = 20
ADAPT: Final = 40
"""Small jobs that come before those that count: the governor hears of them first."""
SETTLE: Final = 8
"""The same without a governor: every slot has begun its work."""
ROUNDS: Final = 5
MOST_ROUNDS: Final = 10
WORKED: Final = 0.7
"""Of the slots' time: the least that the bulk jobs worked. The rest is between two jobs, and what
the ends of the stretch cut."""
LOADED: Final = 0.7
"""Of the time: the least that the database worked or waited for a processor, without a governor."""
TIMES: Final = 3
TIMES_P95: Final = 5
"""How many times longer than alone small jobs may wait beside bulk work, p50 and p95."""
LESS: Final = 2
"""How many times longer small jobs wait without the governor, at the least."""
KEPT: Final = PaceSettings().floor_percent / 100
"""Of the bulk throughput without a governor, at the least. A transaction occupies this database as
long as it has records, so little room is left between small chunks for small jobs and large ones
for throughput."""
AIM_KEPT: Final = 0.7
FIELDS: Final = {f"field-{number}": "some text of a record" for number in range(10)}
"""Of a bulk tenant's records: a transaction over many of them takes the database a while."""


@dataclass(frozen=True)
class Stretch:
    """Small jobs beside bulk work."""

    dwell: Dwell
    rate: float
    """Records a second of all slots while bulk jobs worked."""
    worked: float
    """The share of the slots' time that bulk jobs worked."""
    database: float | None
    """The share of the time that the database worked or waited for a processor; None where the
    operating system does not tell."""

    def __str__(self) -> str:
        database = "" if self.database is None else f", database {self.database:.2f}"
        return f"{self.dwell.p50} ms (slots worked {self.worked:.2f}{database} of the time)"


@dataclass(frozen=True)
class Round:
    idle: Dwell
    """Before and after."""
    governed: Stretch
    free: Stretch

    def __str__(self) -> str:
        return (
            f"small p50 {self.idle.p50} ms alone, {self.governed} with the governor, {self.free} "
            f"without{'' if self.shows else ': does not count'}"
        )

    @property
    def shows(self) -> bool:
        """The bulk slots worked, and without the governor the database was what they waited
        for."""
        worked = min(self.governed.worked, self.free.worked) >= WORKED
        return worked and (self.free.database is None or self.free.database >= LOADED)

    @property
    def p50(self) -> float:
        return self.governed.dwell.p50 / max(self.idle.p50, 1)

    @property
    def p95(self) -> float:
        return self.governed.dwell.p95 / max(self.idle.p95, 1)

    @property
    def harm(self) -> float:
        return self.free.dwell.p50 / max(self.idle.p50, 1)

    @property
    def less(self) -> float:
        return self.free.dwell.p50 / max(self.governed.dwell.p50, 1)

    @property
    def kept(self) -> float:
        return self.governed.rate / max(self.free.rate, 0.001)


def run(bench: Bench) -> Iterator[Seen]:
    yield from slow_bulk.run(bench)
    rounds = bench.once("paced", lambda: _measure(bench))
    yield enough(rounds)
    shown = [each for each in rounds if each.shows]
    if not shown:
        return
    yield from beside_bulk(shown)
    yield less(shown)
    yield kept(shown)
    yield _told("with the governor", shown, [each.governed for each in shown])


def control(bench: Bench) -> Iterator[Seen]:
    """Without a governor: the harm, against idle lanes of the same rounds."""
    rounds = bench.once("paced", lambda: _measure(bench))
    shown = [each for each in rounds if each.shows]
    yield enough(rounds)
    if shown:
        yield at_most("p50", TIMES, [each.harm for each in shown]).contrary()
        yield _told("without a governor", shown, [each.free for each in shown])


def enough(rounds: Sequence[Round]) -> Expectation:
    """The ratios are of so many rounds as promised, and of no others."""
    shown = sum(each.shows for each in rounds)
    loads = [each.free.database for each in rounds if each.free.database is not None]
    return Expectation.of(
        "part 1: rounds in which the bulk slots worked and the database was loaded",
        expected=f"at least {ROUNDS}",
        saw=f"{shown} of {len(rounds)}; slots worked "
        f"{spread([each.free.worked for each in rounds])} of the time, the database "
        f"{spread(loads)}",
        ok=shown >= ROUNDS,
    )


def beside_bulk(rounds: Sequence[Round]) -> Iterator[Expectation]:
    yield at_most("p50", TIMES, [each.p50 for each in rounds])
    yield at_most("p95", TIMES_P95, [each.p95 for each in rounds])


def at_most(name: str, most: float, ratios: Sequence[float]) -> Expectation:
    return Expectation.of(
        f"part 1: {name} dwell of small jobs beside bulk work, against idle lanes",
        expected=f"at most {most} x",
        saw=f"{median(ratios):.1f} x ({spread(ratios)})",
        ok=median(ratios) <= most,
    )


def less(rounds: Sequence[Round]) -> Expectation:
    ratios = [each.less for each in rounds]
    return Expectation.of(
        "part 1: small p50 beside bulk work, without a governor against with it",
        expected=f"at least {LESS} x",
        saw=f"{median(ratios):.1f} x ({spread(ratios)}): {median(r.harm for r in rounds):.1f} "
        f"against {median(r.p50 for r in rounds):.1f} x idle",
        ok=median(ratios) >= LESS,
    )


def kept(rounds: Sequence[Round]) -> Expectation:
    shares = [each.kept for each in rounds]
    return Expectation.of(
        "part 1: throughput of bulk work that waits for the database, with the governor against "
        "without",
        expected=f"at least {KEPT} (aim: {AIM_KEPT})",
        saw=f"{median(shares):.2f} ({spread(shares)})",
        ok=median(shares) >= KEPT,
    )


def spread(values: Sequence[float]) -> str:
    """The least and the greatest."""
    return f"{min(values):.2f} to {max(values):.2f}" if values else "unknown"


def _told(how: str, rounds: Sequence[Round], stretches: Sequence[Stretch]) -> Information:
    def typical(dwells: Sequence[Dwell]) -> str:
        return (
            f"p50 {median(each.p50 for each in dwells):.0f}, "
            f"p95 {median(each.p95 for each in dwells):.0f}, max {max(d.max for d in dwells)} ms"
        )

    return Information(
        what=f"part 1: dwell of small jobs, {how}",
        beside=f"idle: {typical([each.idle for each in rounds])}",
        saw=typical([each.dwell for each in stretches]),
    )


def _measure(bench: Bench) -> list[Round]:
    here = town(bench, "paced")
    ids = {who: here.load(who, EACH, **FIELDS) for who in BULK}
    for who in BULK:
        set_slots(here.world, here.tenant(who), Lane.BULK, 1)
    small = Coming.of(here, most=ADAPT)
    small.come(ADAPT)  # connections, imports, and what quiet times are
    rounds: list[Round] = []
    before = small.come(SMALL_JOBS)
    while sum(each.shows for each in rounds) < ROUNDS and len(rounds) < MOST_ROUNDS:
        # What drifts during a round is on either side as often.
        first = len(rounds) % 2 == 0
        stretches = {on: _stretch(here, small, ids, on=on) for on in (first, not first)}
        after = small.come(SMALL_JOBS)
        one = Round(Dwell.of([*before, *after]), stretches[True], stretches[False])
        rounds.append(one)
        bench.steps.say(f"part 1, round {len(rounds)}: {one}")
        before = after
    with here.working({"bulk_slots": SLOTS}):
        here.clear()
    return rounds


def _stretch(here: Town, small: Coming, ids: dict[str, list[str]], *, on: bool) -> Stretch:
    bulk = here.line(ids, LEFT)
    # Without slices: a job that may not give way is never put off either, so no slot waits.
    with here.working({"bulk_slots": SLOTS, "timing_slice": 0, "pace_on": on}):
        here.running(bulk, SLOTS)
        small.come(ADAPT if on else SETTLE)
        database = DatabaseLoad.of(here.stack)
        began, before = time.monotonic(), here.rows(bulk)
        dwell = small.come(SMALL_JOBS)
        after, took = here.rows(bulk), time.monotonic() - began
        load = database.share()
    done, ms = done_between(before, after)
    return Stretch(
        dwell=Dwell.of(dwell),
        rate=SLOTS * 1000 * done / max(ms, 1),
        worked=ms / 1000 / (SLOTS * took),
        database=load,
    )


def done_between(before: Sequence[JobRow], after: Sequence[JobRow]) -> tuple[int, int]:
    """Records and working time (ms) of these jobs between two looks, of whole chunks."""
    pairs = list(zip(before, after, strict=True))
    done = sum(after.position - before.position for before, after in pairs)
    return done, sum(after.worked_ms - before.worked_ms for before, after in pairs)
