"""Whose turn it is in a full bulk lane: pure functions over who waits and what tenants have used.

A tenant's share counts the slots' time that its jobs took while other jobs waited, divided by its
weight. It fades, so that nothing is held against a tenant for ever, and nobody can save it up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

FADES: Final = 20
"""Slices after which half of what a tenant has used is forgotten."""
LEAD: Final = 2
"""Slices that a waiting tenant can be behind at most: what it did not use longer ago is gone."""
OVERDUE: Final = 10
"""Slices without a turn after which a waiting tenant is next, whatever it has used."""
MAX_WEIGHT: Final = 100


@dataclass(frozen=True)
class Share:
    """The time (ms) that a tenant's jobs had slots while others waited."""

    used: int = 0
    at: int = 0
    """When ``used`` was written (epoch ms); it fades from there."""
    weight: int = 1
    served_at: int = 0
    """When a turn of the tenant last ended while others waited (epoch ms)."""


@dataclass(frozen=True)
class Waiter:
    """A job that could run in the lane if a slot were free."""

    job_id: str
    tenant: str
    since: int


@dataclass(frozen=True)
class Turns:
    """The lane as one worker sees it at one moment. ``slice_ms``: how long a turn is."""

    slice_ms: int
    now: int
    shares: Mapping[str, Share]
    """Of the tenants in question; a tenant without one has used nothing."""

    def used(self, tenant: str) -> float:
        """What the tenant has used by now, per weight (ms)."""
        share = self.shares.get(tenant, Share())
        faded: float = 0.5 ** (max(0, self.now - share.at) / (FADES * self.slice_ms))
        return share.used * faded / share.weight

    def charged(self, tenant: str, ms: int) -> Share:
        """The tenant's share once so many more ms are counted."""
        charged = self._worth(tenant, self.used(tenant) + ms / self._weight(tenant))
        return replace(charged, served_at=self.now)

    def caught_up(self, tenant: str, *, to: str) -> Share | None:
        """The share of a tenant that is too far behind another one, brought up to the most that it
        may be behind; None when it is not."""
        least = self.used(to) - LEAD * self.slice_ms
        return self._worth(tenant, least) if self.used(tenant) < least else None

    def gives_way(self, tenant: str, waiters: Sequence[Waiter]) -> bool:
        """Whether a running job of the tenant, at the end of its slice, makes room for a waiter."""
        mine = self.used(tenant)
        return any(
            waiter.tenant == tenant or self.overdue(waiter) or self.used(waiter.tenant) < mine
            for waiter in waiters
        )

    def put_off(self, job: Waiter, others: Sequence[Waiter]) -> bool:
        """Whether a free slot had better go to another waiter than to the job it was offered. At
        least one of all waiters is never put off."""
        own = [other for other in others if other.tenant == job.tenant]
        if any(job.since - other.since >= self.slice_ms for other in own):
            return True
        if self.overdue(job):
            return False
        foreign = [other for other in others if other.tenant != job.tenant]
        return any(self.overdue(other) or self._well_behind(other, job) for other in foreign)

    def overdue(self, waiter: Waiter) -> bool:
        """Whether the waiter's tenant has been passed over for too long. A tenant's own jobs take
        their turns one after another, so its last turn counts as well as the waiter's wait."""
        served_at = self.shares.get(waiter.tenant, Share()).served_at
        return self.now - max(waiter.since, served_at) >= OVERDUE * self.slice_ms

    def _well_behind(self, other: Waiter, job: Waiter) -> bool:
        """By at least half the slice that it would get. Nearer than that, the queue's order is as
        good as any."""
        half = self.slice_ms / 2 / self._weight(other.tenant)
        return self.used(other.tenant) + half <= self.used(job.tenant)

    def _weight(self, tenant: str) -> int:
        return self.shares.get(tenant, Share()).weight

    def _worth(self, tenant: str, used: float) -> Share:
        """The share that is worth so much per weight now."""
        share = self.shares.get(tenant, Share())
        return replace(share, used=round(used * share.weight), at=self.now)
