"""A job that waits in backoff, for longer than anybody's lease would last, keeps its subject. The
control: timings in the wrong order, which Fairlane refuses to start with.

In both, a dependency of the first job is down for longer than the stale threshold, first inside a
chunk, then between two attempts, and somebody asks for the same subject all the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from handlers.aws.record_store import DynamoRecordStore
from handlers.jobs.errors import Transient
from handlers.jobs.model import Job, Record
from handlers.jobs.ports import World
from handlers.jobs.states import State
from handlers.jobs.submit import Busy, Created
from handlers.jobs.timing import BrokenRelation, Timing

from .framework import Bench, Expectation, Scenario
from .site import CHUNK, STALE, TIMING, Site, lines_of, site, slots

DOWN_FOR: Final = STALE + 4
"""Seconds the dependency is down."""
ASKS_EVERY: Final = 0.25
WITHIN: Final = 40

REVERSED: Final = Timing(
    small=TIMING.small,
    bulk=TIMING.bulk.model_copy(update={"heartbeat": 30.0, "lease_ttl": 1.0}),
    **{
        **TIMING.model_dump(exclude={"small", "bulk"}),
        "takeover_grace": 0.5,
    },
)
"""A lease shorter than a beat, and a grace shorter than the visibility."""


def run(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "ordering") as here:
        ids = here.load(4 * CHUNK)
        outage = Outage(DOWN_FOR)
        with bench.steps.step("Asking for the subject of a waiting job"), slots(_world(here, outage), 2):
            job = here.submit(ids, "waited-for")
            asked = _ask_until(here, ids, job, lambda: here.job(job).state.terminal)
            here.until("every message is gone", lambda: here.messages() == 0, WITHIN)
        yield Expectation.of(
            "seconds the job waited for its dependency, and the stale threshold",
            expected=f"more than {STALE:g}",
            saw=f"{outage.lasted:.1f}",
            ok=outage.lasted > STALE,
        )
        yield Expectation.of(
            "it waited between two attempts, not only inside one",
            expected="more than 1 attempt",
            saw=len(lines_of(here.log, job, "attempt_begun")),
            ok=len(lines_of(here.log, job, "attempt_begun")) > 1,
        )
        yield Expectation.of(
            "others who asked for its subject meanwhile",
            expected="at least 10, all refused, naming the job",
            saw=f"{asked.refused} refused naming it, {asked.other} answered otherwise",
            ok=asked.refused >= 10 and asked.other == 0,  # noqa: PLR2004  as it says
        )
        ended = here.job(job)
        yield Expectation.equal(
            "the job, and records changed other than once",
            expected=(State.SUCCEEDED.value, 0),
            saw=(ended.state.value, sum(times != 1 for times in here.changes(ids))),
        )
        yield Expectation.equal(
            "a job that asks afterwards is taken",
            expected=True,
            saw=isinstance(here.ask(ids, job.subject), Created),
        )


def control(bench: Bench) -> Iterator[Expectation]:
    yield _refused_to_start()
    with site(bench, "ordering-control") as here:
        here.world = replace(here.world, timing=REVERSED)  # never checked, for once
        ids = here.load(4 * CHUNK)
        outage = Outage(DOWN_FOR)
        with bench.steps.step("The same in the wrong order"), slots(_world(here, outage), 2):
            job = here.submit(ids, "waited-for")
            asked = _ask_until(here, ids, job, lambda: bool(asked_taken(here, job)))
            taken = here.job(job)
            here.until("the second runs", lambda: len(_begun(here)) > 1, WITHIN)
            working = not lines_of(here.log, job, "ownership_lost", "retry_later", "job_ended")
            # Then the dependency comes back, and both come to their ends.
            here.until("the first notices", lambda: bool(lines_of(here.log, job, "ownership_lost")), WITHIN)
        yield Expectation.equal(
            "the subject of a living worker's job is given to another, and that job is",
            expected=(1, State.FAILED.value),
            saw=(asked.taken, taken.state.value),
        )
        yield Expectation.equal(
            "workers inside the subject's work at the same time",
            expected=2,
            saw=1 + working,
        )


SCENARIO: Final = Scenario(
    "lease-ordering",
    "Nobody gets the subject of a job that waits, however long; with timings reversed two run.",
    run,
    control,
)
