"""One tenant floods the small lane, and the others hardly notice. The control: no tenant slots.

Jobs are slow because the place they have to tell is: that takes a worker's time and none of this
machine's, which would slow everybody down whatever the lane does. The others come in bursts, more
of them than there are workers, so that their dwell is a wait for each other, far longer than what
else may happen on a busy machine; a burst comes when the one before it has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from fairlane_client import Client, NewJob
from handlers.jobs.words.job import Lane
from scripts.load.ledger import JobRow, Ledger
from scripts.load.measures import Dwell, Overtaking, most_at_once, overtaking
from scripts.load.patience import STALLED_S, Patience
from scripts.local.errors import LocalError
from scripts.local.settings import Chosen, over
from scripts.local.stack import LocalStack

from .framework import Bench, Expectation, Information, Scenario
from .slow_place import SlowPlace

NOISY: Final = "noisy"
QUIET: Final = tuple(f"quiet-{number}" for number in range(1, 10))
FIELD: Final = "n"

CONCURRENCY: Final = 4
"""Jobs the small lane runs at once."""
SLOTS: Final = 1
"""Of each tenant, in the run."""
NO_SLOTS: Final = 1000
"""In the control: more than there are jobs."""
FLOOD: Final = 36
"""Jobs of the noisy tenant, on a subject each."""
SLOW_S: Final = 1.5
"""How long the place takes to hear of one of them, and"""
USUAL_S: Final = 0.6
"""of anybody else's."""
BURSTS: Final = 6
"""In which each other tenant submits a job."""
WITHIN: Final = 2.0
"""How many times its unloaded value the others' p95 dwell is where jobs can come at once. A machine
that is slow to take them is not compared with it."""
PASSED_PERCENT: Final = 50
"""Of the flood's waiting jobs the others have to start before."""
SHARE: Final = 0.5
"""Of the noisy tenant's p50 dwell the others' p95 may be."""
LOOK_S: Final = 0.5


def run(bench: Bench) -> Iterator[Expectation | Information]:
    with _stack(bench, "noisy", SLOTS) as stack:
        seen = _measure(bench, stack)
        yield from all_succeeded(seen)
        yield slots_kept(seen.flood, SLOTS)
        yield held(seen.flood)
        yield from passed_by(seen)
        yield against_unloaded(seen)


def control(bench: Bench) -> Iterator[Expectation | Information]:
    """The same jobs at the same pace, with all of a tenant's jobs in the queue at once."""
    with _stack(bench, "noisy-without", NO_SLOTS) as stack:
        seen = _measure(bench, stack)
        yield from all_succeeded(seen)
        met = _met(seen).met_a_line
        yield Expectation.of(
            "the others' jobs that came while jobs of the flood waited",
            expected="at least 1",
            saw=met,
            ok=met > 0,
        )
        yield from (claim.contrary() for claim in passed_by(seen))
        yield against_unloaded(seen)


SCENARIO: Final = Scenario(
    "noisy-tenant",
    "A tenant that floods the small lane waits for its own slots; others start as ever.",
    run,
    control,
)


# --- judgement --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """Jobs as the table has them."""

    unloaded: Sequence[JobRow]
    """The others', before the flood."""
    loaded: Sequence[JobRow]
    """The others', beside it."""
    flood: Sequence[JobRow]

    @property
    def ratio(self) -> float:
        return dwell(self.loaded).p95 / max(dwell(self.unloaded).p95, 1)

    @property
    def compared(self) -> str:
        before, beside = dwell(self.unloaded), dwell(self.loaded)
        return (
            f"{self.ratio:.1f} x: {beside.p95} ms (p50 {beside.p50}), "
            f"unloaded {before.p95} ms (p50 {before.p50})"
        )


def dwell(rows: Sequence[JobRow]) -> Dwell:
    """From their creation on: should one of them have been held, that counts too."""
    return Dwell.of(row.started_at - row.created_at for row in rows if row.started_at is not None)


def all_succeeded(seen: Seen) -> Iterator[Expectation]:
    for who, rows, expected in (
        ("the others, unloaded", seen.unloaded, BURSTS * len(QUIET)),
        ("the others", seen.loaded, BURSTS * len(QUIET)),
        ("the noisy tenant", seen.flood, FLOOD),
    ):
        done = sum(row.lane is Lane.SMALL and row.succeeded == 1 for row in rows)
        yield Expectation.equal(
            f"small jobs of {who} that changed their record", expected=expected, saw=done
        )


def slots_kept(flood: Sequence[JobRow], slots: int) -> Expectation:
    """Between its admission and its end a job has one of its tenant's slots."""
    most = most_at_once(
        (row.admitted_at, row.finished_at)
        for row in flood
        if row.admitted_at is not None and row.finished_at is not None
    )
    return Expectation.of(
        "most jobs of the noisy tenant in the queue or running",
        expected=f"at most {slots}, its slots",
        saw=most,
        ok=0 < most <= slots,
    )


def passed_by(seen: Seen) -> Iterator[Expectation]:
    """The noisy tenant waits for itself, and the others do not wait for it."""
    met = _met(seen)
    yield Expectation.of(
        "jobs of the flood, waiting when another tenant's job came, that it started before",
        expected=f"at least {PASSED_PERCENT} %",
        saw=f"{met.percent:g} % ({met.overtaken} of {met.ahead})",
        ok=met.percent >= PASSED_PERCENT,
    )
    others, noisy = dwell(seen.loaded), dwell(seen.flood)
    yield Expectation.of(
        "the others' p95 dwell, against the noisy tenant's p50",
        expected=f"at most {SHARE:g} x",
        saw=f"{others.p95 / max(noisy.p50, 1):.2f} x: {others.p95} ms, {noisy.p50} ms",
        ok=others.p95 <= SHARE * noisy.p50,
    )


def _met(seen: Seen) -> Overtaking:
    # Held or in the queue: what counts is that they came before.
    flood = [row.model_copy(update={"admitted_at": row.created_at}) for row in seen.flood]
    return overtaking(seen.loaded, flood, slots=CONCURRENCY)


def against_unloaded(seen: Seen) -> Information:
    return Information(
        what="the others' p95 dwell beside the flood, against its unloaded value",
        beside=f"{WITHIN:g} x where jobs can come at once",
        saw=seen.compared,
    )


def held(flood: Sequence[JobRow]) -> Expectation:
    waited = held_of(flood)
    return Expectation.of(
        "jobs of the noisy tenant that were held before",
        expected=f"more than half of {FLOOD}",
        saw=waited,
        ok=waited > FLOOD / 2,
    )


def held_of(rows: Sequence[JobRow]) -> int:
    return sum(row.admitted_at is None or row.admitted_at > row.created_at + 1 for row in rows)


# --- the load ---------------------------------------------------------------------------------


@contextmanager
def _stack(bench: Bench, name: str, slots: int) -> Iterator[LocalStack]:
    place = SlowPlace(seconds={NOISY: SLOW_S}, usual=USUAL_S)
    with place.serving():
        chosen: Chosen = {
            "small_lane": {"maximum_concurrency": CONCURRENCY},
            "limits": {"tenant_slots_small": slots},
        }
        with bench.stack(
            name, settings=over(chosen, {"effects": place.settings}), records=False
        ) as stack:
            yield stack


def _measure(bench: Bench, stack: LocalStack) -> Seen:
    load = _Load(bench, stack)
    load.records()
    before = load.others("Jobs of nine tenants, unloaded", "before")
    flood = load.flood()
    beside = load.others("The same beside the flood", "beside")
    rows = load.ended([*before, *flood, *beside])
    return Seen(
        unloaded=[rows[id_] for id_ in before],
        loaded=[rows[id_] for id_ in beside],
        flood=[rows[id_] for id_ in flood],
    )


class _Load:
    def __init__(self, bench: Bench, stack: LocalStack) -> None:
        self._step = bench.steps.step
        self._stack = stack
        self._ledger = Ledger(stack)
        self._clients = {
            tenant: Client(stack.api.url, stack.issuer.token(tenant)) for tenant in (NOISY, *QUIET)
        }

    def records(self) -> None:
        """One for each job."""
        settings = self._ledger.settings
        for tenant, names in self._names().items():
            for name in names:
                self._stack.clients.dynamodb.put_item(
                    TableName=settings.records_table,
                    Item={
                        settings.records_tenant_key: {"S": tenant},
                        settings.records_id_key: {"S": name},
                        FIELD: {"N": "0"},
                        "version": {"N": "1"},
                    },
                )

    def _names(self) -> Mapping[str, Sequence[str]]:
        quiet = [f"{when}-{number}" for when in ("before", "beside") for number in range(BURSTS)]
        return {
            NOISY: [f"flood-{number}" for number in range(FLOOD)],
            **dict.fromkeys(QUIET, quiet),
        }

    def flood(self) -> list[str]:
        with self._step("The flood", FLOOD) as advance:
            made = []
            for number in range(FLOOD):
                made.append(self._submit(NOISY, f"flood-{number}"))
                advance(1)
            return made

    def others(self, what: str, when: str) -> list[str]:
        """Burst by burst, each when all of the last one have ended."""
        with self._step(what, BURSTS * len(QUIET)) as advance:
            made: list[str] = []
            for number in range(BURSTS):
                self._ended(made[-len(QUIET) :])
                for tenant in QUIET:
                    made.append(self._submit(tenant, f"{when}-{number}"))
                    advance(1)
            return made

    def _submit(self, tenant: str, name: str) -> str:
        job = NewJob(
            operation="adjust_number", subject=name, ids=[name], params={"field": FIELD, "add": 1}
        )
        return self._clients[tenant].submit(job).id

    def ended(self, ids: Sequence[str]) -> Mapping[str, JobRow]:
        """Every job, when all have ended. Raises LocalError."""
        with self._step("Waiting for all to end"):
            return self._ended(ids)

    def _ended(self, ids: Sequence[str]) -> Mapping[str, JobRow]:
        patience = Patience()
        while True:
            rows = self._ledger.jobs()
            if all(rows[id_].state.terminal for id_ in ids):
                return rows
            if not patience.lasts({(row.id, row.state) for row in rows.values()}):
                raise LocalError(f"no job has moved for {STALLED_S} s")
            time.sleep(LOOK_S)
