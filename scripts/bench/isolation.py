"""How long a small job waits beside bulk work, in Fairlane and in Celery, on the same local AWS.

Two bounds are possible. What lanes are for holds anywhere: with one queue, a small job waits for
the bulk jobs in front of it. How far bulk work slows small jobs that have slots of their own says
as much about the processors that the local AWS and all workers share, so it has no bound: it is
shown, and what Fairlane aims at beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from scripts.load.ledger import Ledger

from .celery_lanes import celery_lanes
from .fairlane_lanes import FairlaneLanes
from .figures import Figure, at_most
from .framework import Bench, Measured
from .jobs import load as load_records
from .lanes import BULK_TENANTS, ITEMS, SMALL_TENANT, Load, Phase, System
from .place import SLOTS, Place

ROUNDS: Final = 3
SMALL_JOBS: Final = 20
"""In each phase."""
WARM: Final = 8
BULK_RECORDS: Final = 3000
"""Of each bulk job: some seconds' work."""
OF_ONE_QUEUE: Final = 0.5
"""Of the wait behind one queue, at the most: lanes that are none have all of it."""
OF_CELERY: Final = 0.5
"""The aim: of the wait in Celery."""


@dataclass(frozen=True)
class Series:
    """A system, how it is loaded, and its phases, one of each for every round."""

    system: System
    loaded_by: Callable[[System], Phase]
    idle: list[Phase] = field(default_factory=list)
    loaded: list[Phase] = field(default_factory=list)

    def slowdowns(self, of: Callable[[Phase], float]) -> list[float]:
        """Loaded ÷ idle, for each round."""
        return [of(a) / of(b) for a, b in zip(self.loaded, self.idle, strict=True)]


def run(place: Place) -> Measured:
    rounds, small_jobs = place.rounds(ROUNDS), place.rounds(SMALL_JOBS, 6)
    world = place.deployment().world
    bulk_records = place.rounds(BULK_RECORDS, 960)
    small_records = max(small_jobs, WARM) * ITEMS
    tenants = {SMALL_TENANT: small_records, **dict.fromkeys(BULK_TENANTS, bulk_records)}
    with place.steps.step("Loading records", len(tenants)) as advance:
        for tenant, count in tenants.items():
            load_records(world, count, tenant)
            advance(1)
    stack = place.serving()
    load = Load(small_jobs)
    table = Ledger(stack).settings.records_table
    with celery_lanes(stack, table, bulk_records) as (two_queues, one_queue):
        series = (
            Series(FairlaneLanes(stack, bulk_records), load.loaded),
            Series(two_queues, load.loaded),
            # Each of its slots has one bulk job in front of the small ones.
            Series(one_queue, lambda system: load.behind(system, 2 * SLOTS)),
        )
        with place.steps.step("Starting what is measured", len(series)) as advance:
            for each in series:
                _warm(each.system)
                advance(1)
        total = 2 * rounds * len(series)
        with place.steps.step("Small jobs, alone and beside bulk work", total) as advance:
            for number in range(rounds):
                for each in series if number % 2 == 0 else series[::-1]:
                    each.idle.append(load.idle(each.system))
                    advance(1)
                    each.loaded.append(each.loaded_by(each.system))
                    advance(1)
    return Measured(figures=_figures(*series), facts=_facts(*series))


BENCH: Final = Bench(
    "isolation", "The wait of a small job beside bulk work, in Fairlane and in Celery", run
)


def _warm(system: System) -> None:
    """Let every process of it make its connections."""
    for number in range(WARM):
        system.small(number)
    system.waits()
    system.fill(2 * SLOTS)
    system.drain()


def _figures(fairlane: Series, two: Series, one: Series) -> tuple[Figure, ...]:
    ours, theirs = fairlane.slowdowns(_p50), two.slowdowns(_p50)
    return (
        Figure.of(
            "small p50 loaded: Fairlane ÷ Celery, one queue",
            [phase.p50 for phase in fairlane.loaded],
            [phase.p50 for phase in one.loaded],
            bound=at_most(OF_ONE_QUEUE),
        ),
        Figure.of("small p50 loaded ÷ idle: Fairlane", ours),
        Figure.of("small p95 loaded ÷ idle: Fairlane", fairlane.slowdowns(_p95)),
        Figure.of("small p50 loaded ÷ idle: Celery, two queues", theirs),
        Figure.of("small p95 loaded ÷ idle: Celery, two queues", two.slowdowns(_p95)),
        Figure.of("small p50 loaded ÷ idle: Celery, one queue", one.slowdowns(_p50)),
        Figure.of(
            "loaded ÷ idle: Fairlane ÷ Celery, two queues",
            ours,
            theirs,
            aim=at_most(1),
        ),
        Figure.of(
            "small p50 idle: Fairlane ÷ Celery, two queues",
            [phase.p50 for phase in fairlane.idle],
            [phase.p50 for phase in two.idle],
            aim=at_most(OF_CELERY),
        ),
        Figure.of(
            "small p50 loaded: Fairlane ÷ Celery, two queues",
            [phase.p50 for phase in fairlane.loaded],
            [phase.p50 for phase in two.loaded],
            aim=at_most(OF_CELERY),
        ),
    )


def _facts(fairlane: Series, two: Series, one: Series) -> dict[str, float]:
    named = {"Fairlane": fairlane, "Celery with two queues": two, "Celery with one": one}
    facts = {}
    for name, series in named.items():
        for state, phases in (("idle", series.idle), ("loaded", series.loaded)):
            facts[f"ms p50 {state}: {name}"] = median(map(_p50, phases))
            facts[f"ms p95 {state}: {name}"] = median(map(_p95, phases))
        facts[f"bulk records/s: {name}"] = median(phase.bulk for phase in series.loaded)
    return facts


def _p50(phase: Phase) -> float:
    return phase.p50


def _p95(phase: Phase) -> float:
    return phase.p95
