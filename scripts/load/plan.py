"""Which jobs: bulk ones over all records, some times over, and small ones that come one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, count, cycle, islice, pairwise, zip_longest
from typing import Final, TypeAlias

from fairlane_client import NewJob

Tenants: TypeAlias = Mapping[str, Sequence[str]]
"""Tenant -> the ids of its records."""

FIELD: Final = "elevation"
"""A number every airport has."""
BULK_ADDS: Final = Decimal(1)
SMALL_ADDS: Final = Decimal("0.001")
"""Different, so that a record's number tells how many jobs of each kind changed it."""


@dataclass(frozen=True)
class Planned:
    """One job to submit."""

    tenant: str
    subject: str
    ids: tuple[str, ...]
    adds: Decimal

    @property
    def request(self) -> NewJob:
        return NewJob(
            operation="adjust_number",
            subject=self.subject,
            ids=self.ids,
            params={"field": FIELD, "add": self.adds},
        )


@dataclass(frozen=True)
class Load:
    idle: tuple[Planned, ...]
    """Small jobs that come before there is any bulk work, at the same pace as those beside it."""
    once: tuple[Planned, ...]
    """Bulk jobs over every record."""
    passes: int
    """How often they are all submitted, at the least."""
    small: tuple[Planned, ...]
    """Submitted one after another, whatever became of those before."""
    pace: float
    """Seconds from one small job to the next, at the most."""

    @property
    def bulk(self) -> tuple[Planned, ...]:
        """Submitted first, all at once."""
        return tuple(islice(self._endless(), self.passes * len(self.once)))

    def spare(self) -> Iterator[Planned]:
        """Endlessly more of them, for a machine on which those would not outlast the small jobs."""
        return islice(self._endless(), self.passes * len(self.once), None)

    def _endless(self) -> Iterator[Planned]:
        for n in count():
            for job in self.once:
                yield replace(job, subject=f"{job.subject}/{n}")


def plan(
    tenants: Tenants,
    *,
    part: int = 6300,
    passes: int = 2,
    small_jobs: int = 50,
    small_items: int = 10,
    idle_jobs: int = 10,
    pace: float = 0.2,
) -> Load:
    """Bulk jobs over every record ``passes`` times, at most ``part`` records each, ``small_jobs``
    jobs beside them and ``idle_jobs`` before them.

    The largest tenants' bulk jobs come first, so they are the ones in the slots. The small jobs
    belong to the other half of the tenants.
    """
    by_size = sorted(tenants, key=lambda tenant: (-len(tenants[tenant]), tenant))
    parts = [_parts(tenant, sorted(tenants[tenant]), part) for tenant in by_size]
    rounds = zip_longest(*(_pairs(jobs) for jobs in parts), fillvalue=())
    once = tuple(chain.from_iterable(chain.from_iterable(rounds)))
    quiet = by_size[len(by_size) // 2 :]
    small = tuple(
        _small(tenant, sorted(tenants[tenant]), number, small_items)
        for number, tenant in enumerate(islice(cycle(quiet), idle_jobs + small_jobs))
    )
    return Load(small[:idle_jobs], once, passes, small[idle_jobs:], pace)


def _parts(tenant: str, ids: Sequence[str], size: int) -> list[Planned]:
    """Of about equal size, so that none is small enough for the small lane by accident."""
    parts = -(-len(ids) // size)
    cuts = [len(ids) * number // parts for number in range(parts + 1)]
    return [
        Planned(tenant, f"airports/{ids[start]}", tuple(ids[start:end]), BULK_ADDS)
        for start, end in pairwise(cuts)
    ]


def _pairs(jobs: Sequence[Planned]) -> list[Sequence[Planned]]:
    """Two of a tenant at a time: as many as it may have in the bulk queue by default."""
    return [jobs[start : start + 2] for start in range(0, len(jobs), 2)]


def _small(tenant: str, ids: Sequence[str], number: int, items: int) -> Planned:
    """Records of the tenant, other ones for each number as far as there are any."""
    start = number * items % len(ids)
    chosen = tuple(islice(cycle(ids), start, start + min(items, len(ids))))
    return Planned(tenant, f"corrections/{number:03}", chosen, SMALL_ADDS)
