"""The books of turns in the bulk lane: how long a tenant, and a job, is passed over."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.writes import Item

    from .threads import Threads

PASSED_OVER: Final = 10
"""Slices without a turn after which a waiting tenant is next, whatever it has used
(docs/fairness.md)."""
STANDS_FREE: Final = 4000
"""ms that a slot stands free at most for a job whose turn it is."""
APART: Final = 3
"""Turns' worth of slot time, per weight, that a tenant may be ahead of another one that wanted the
slot all the time."""


@dataclass
class Turns:
    """Of one run. Each tenant's clock runs while a job of it waits for the lane and none runs."""

    hub: Threads
    slice_ms: int
    wrong: Callable[[str, str], None]
    longest_chunk: int = 0
    """ms; how late a turn ends after its slice. 0: calls fail, and no bound holds."""
    waiting: dict[str, dict[str, int]] = field(default_factory=dict)
    """By tenant, the jobs that wait, each with the time since when."""
    running: dict[str, set[str]] = field(default_factory=dict)
    unserved: dict[str, int] = field(default_factory=dict)
    """Since when each tenant has waited."""
    weights: dict[str, int] = field(default_factory=dict)
    """By tenant; 0: its share is not compared."""
    begun: dict[str, int] = field(default_factory=dict)
    """Since when each running job has its slot."""
    worked: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """ms per weight that each tenant's jobs had the slot."""
    before: dict[tuple[str, str], float] = field(default_factory=dict)
    """How far the first of two tenants was ahead of the second when both began to want the slot."""
    apart: float = 0.0
    """The farthest that one was ahead since, in turns."""
    most: int = 0
    """The most jobs that waited at once."""
    longest: float = 0.0
    """The longest wait of a tenant, in shares of the bound."""

    def committed(self, id_: str, item: Item) -> None:
        if item["lane"] != "bulk":
            return
        tenant = str(item["tenant"])
        waiting, running = (
            self.waiting.setdefault(tenant, {}),
            self.running.setdefault(tenant, set()),
        )
        if item["state"] == "QUEUED" and item.get("has_slot") is True:
            waiting.setdefault(id_, self.hub.now)
            running.discard(id_)
        else:
            waiting.pop(id_, None)
            (running.add if item["state"] == "RUNNING" else running.discard)(id_)
        self._count(id_, tenant)
        self.most = max(self.most, sum(map(len, self.waiting.values())))
        if item["state"] == "RUNNING":
            self._passed_over(tenant)
        if running or not waiting:
            self.unserved.pop(tenant, None)
        else:
            self.unserved.setdefault(tenant, self.hub.now)

    def _passed_over(self, served: str) -> None:
        """A job of this tenant runs; the others that wait are passed over."""
        if not self.longest_chunk or not self.slice_ms:
            return
        bound = self.bound
        for tenant, since in self.unserved.items():
            waited = self.hub.now - since
            self.longest = max(self.longest, waited / bound)
            if waited > bound:
                self.wrong("turns", f"{tenant} waited {waited} ms for a turn; {served} runs now")

    def _count(self, id_: str, tenant: str) -> None:
        """What the tenant's job has used of the slot, and how far the tenant is ahead."""
        if not self.weights.get(tenant):
            return
        running = id_ in self.running[tenant]
        if running:
            self.begun.setdefault(id_, self.hub.now)
        elif (since := self.begun.pop(id_, None)) is not None:
            self.worked[tenant] += (self.hub.now - since) / self.weights[tenant]
        wants = bool(self.waiting[tenant] or self.running[tenant])
        for other in self.weights:
            if other == tenant:
                continue
            ahead = self.worked[tenant] - self.worked[other]
            both = wants and bool(self.waiting.get(other) or self.running.get(other))
            if not both:
                self.before.pop((tenant, other), None)
                self.before.pop((other, tenant), None)
            elif (tenant, other) not in self.before:
                self.before[tenant, other], self.before[other, tenant] = ahead, -ahead
            else:
                since_then = (ahead - self.before[tenant, other]) / self.turn
                self.apart = max(self.apart, since_then)
                if since_then > APART:
                    self.wrong("shares", f"{tenant} is {since_then:.1f} turns ahead of {other}")

    @property
    def turn(self) -> int:
        return self.slice_ms + self.longest_chunk

    @property
    def bound(self) -> int:
        """ms: ten slices, then a turn of every other job that waits, and for how long the slot
        stands free."""
        return PASSED_OVER * self.slice_ms + self.most * self.turn + STANDS_FREE
