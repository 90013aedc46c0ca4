"""A job that waits in backoff, for longer than a dead worker's lease would last, keeps its
subject. The control: timings in the wrong order, with which Fairlane would not start.

In both a dependency of the first job is down, so that it waits, first inside a chunk and then
between two attempts, and somebody asks for its subject all the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Final

from handlers.aws.record_store import DynamoRecordStore
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job
from handlers.jobs.words.operation import Record
from handlers.jobs.words.ports import World
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import BrokenRelation, Timing, ms

from .framework import Bench, Expectation, Scenario
from .site import CHUNK, STALE, TIMING, Site, lines_of, site, slots

RETRY_AFTER: Final = STALE + 1
"""Seconds the dependency asks to be left alone."""
ASKS_EVERY: Final = 0.25
ENOUGH: Final = 20
"""Requests for the subject, at the least; where asking is slow, the dependency is down longer."""

REVERSED: Final = TIMING.model_copy(
    update={
        "bulk": TIMING.bulk.model_copy(update={"heartbeat": 30.0, "lease_ttl": 1.0}),
        "takeover_grace": 0.5,
    }
)
"""A lease shorter than a beat, and a grace shorter than the visibility."""


def run(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "ordering") as here:
        waiting = _Waiting(here)
        with bench.steps.step("Asking for a waiting job's subject"), slots(waiting.world, 2):
            asked = waiting.ask_until(waiting.goes_on, at_least=ENOUGH)
            waiting.outage.end()
            here.ended(waiting.job)
            here.until("every message is gone", lambda: here.messages() == 0)
        yield _waited_long_enough(waiting)
        refused = asked.count(waiting.job.id)
        yield Expectation.of(
            "others who asked for the subject meanwhile",
            expected=f"at least {ENOUGH}, each refused and told the job",
            saw=f"{refused} of {len(asked)} refused and told the job",
            ok=refused == len(asked) >= ENOUGH,
        )
        ended = here.job(waiting.job)
        yield Expectation.equal(
            "the job, and records changed other than once",
            expected=(State.SUCCEEDED.value, 0),
            saw=(ended.state.value, sum(n != 1 for n in here.changes(waiting.ids))),
        )
        yield Expectation.equal(
            "a job that asks afterwards is taken", expected=True, saw=waiting.ask() is None
        )


def control(bench: Bench) -> Iterator[Expectation]:
    yield Expectation.of(
        "Fairlane starts with these timings",
        expected="refused, naming two numbers",
        saw=_objection(REVERSED),
        ok=_objection(REVERSED) != "",
    )
    with site(bench, "ordering-control") as here:
        here.world = replace(here.world, timing=REVERSED)
        waiting = _Waiting(here)
        with bench.steps.step("The same in the wrong order"), slots(waiting.world, 2):
            waiting.ask_until(lambda: bool(waiting.others))
            first = here.job(waiting.job).state
            here.until("the other begins", waiting.other_began)
            alive = not waiting.said("ownership_lost", "retry_later")
            waiting.outage.end()
            here.until("the first one finds out", lambda: waiting.said("ownership_lost"))
        yield Expectation.equal(
            "the subject was given to others, and its job was",
            expected=(1, State.FAILED.value),
            saw=(len(waiting.others), first.value),
        )
        yield Expectation.equal(
            "workers that were inside the subject's work at once", expected=2, saw=1 + alive
        )


SCENARIO: Final = Scenario(
    "lease-ordering",
    "Nobody gets the subject of a job that waits, however long; with timings reversed two run.",
    run,
    control,
)


# --- the wait ---------------------------------------------------------------------------------


class Outage:
    """The records cannot be read until it ends, and whoever tries is asked to come back late."""

    def __init__(self) -> None:
        self._over = Event()

    def end(self) -> None:
        self._over.set()

    def check(self) -> None:
        """Raises Transient while it lasts."""
        if not self._over.is_set():
            raise Transient("records are down", retry_after_ms=ms(RETRY_AFTER))


class _Records(DynamoRecordStore):
    outage: Outage

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        self.outage.check()
        return super().read(tenant, ids)


@dataclass
class _Waiting:
    """A job that waits for its records, and those who ask for its subject."""

    here: Site
    outage: Outage = field(default_factory=Outage)
    others: list[Job] = field(default_factory=list)
    """Jobs that got the subject meanwhile."""

    def __post_init__(self) -> None:
        self.ids = self.here.load(4 * CHUNK)
        self.job = self.here.submit(self.ids, "waited-for")

    @property
    def world(self) -> World:
        records = _Records(
            self.here.stack.clients.dynamodb,
            table=self.here.settings.records_table,
            schema=self.here.schema,
            runtime=self.here.runtime,
        )
        records.outage = self.outage
        return replace(self.here.world, records=records)

    def ask(self) -> str | None:
        """Ask for the subject; the id of the job that was named in a refusal."""
        outcome = self.here.ask(self.ids, self.job.subject)
        if isinstance(outcome, Created):
            self.others.append(outcome.job)
            return None
        return outcome.job_id

    def ask_until(self, holds: Callable[[], bool], *, at_least: int = 1) -> list[str | None]:
        """Ask again and again; what each was told."""
        told: list[str | None] = []

        def asked() -> bool:
            told.append(self.ask())
            time.sleep(ASKS_EVERY)
            return holds() and len(told) >= at_least

        self.here.until("the wait is over", asked)
        return told

    def goes_on(self) -> bool:
        """Its second attempt has begun, and waits for the same."""
        return len(lines_of(self.here.log, self.job, "attempt_begun")) > 1

    def said(self, *actions: str) -> bool:
        return bool(lines_of(self.here.log, self.job, *actions))

    def other_began(self) -> bool:
        return any(lines_of(self.here.log, other, "attempt_begun") for other in self.others)


def _waited_long_enough(waiting: _Waiting) -> Expectation:
    lines = lines_of(waiting.here.log, waiting.job, "retry_later")
    waits = [int(str(line.fields["wait_ms"])) for line in lines]
    return Expectation.of(
        "ms the job waited between two attempts, against the stale threshold",
        expected=f"more than {ms(STALE)}",
        saw=waits,
        ok=bool(waits) and max(waits) > ms(STALE),
    )


def _objection(timing: Timing) -> str:
    try:
        timing.check()
    except BrokenRelation as error:
        return str(error)
    return ""
