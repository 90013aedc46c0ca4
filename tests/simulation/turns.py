"""The books of turns in the bulk lane: how long a tenant, and a job, is passed over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.writes import Item

    from .threads import Threads

PASSED_OVER: Final = 10
"""Slices without a turn after which a waiting tenant is next, whatever it has used
(docs/fairness.md)."""
PUT_OFFS: Final = 2
PUT_OFF: Final = 2000
"""How often a message is put off at most, and for how long (ms)."""


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

    @property
    def bound(self) -> int:
        """ms: ten slices, then a turn of every other job that waits, whose message may have been
        put off as often as one is; and the tenant's own message may be put off before that."""
        turn = self.slice_ms + self.longest_chunk
        return PASSED_OVER * self.slice_ms + self.most * turn + PUT_OFFS * PUT_OFF
