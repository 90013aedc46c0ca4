"""The books of who waits: why each job does, by what was seen to happen, and how long tenants are
passed over in a full lane. What a client would be told is held against them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from handlers.jobs.lifecycle import waiting
from handlers.jobs.storage.control_table import job_of
from handlers.jobs.words.errors import Undecodable

from .items import OVER, held, int_of, lease_key, slots_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from handlers.jobs.lifecycle.waiting import Wait
    from handlers.jobs.words.ports import World
    from handlers.jobs.words.timing import Timing
    from handlers.jobs.words.writes import Item

    from .threads import Threads
    from .watched_store import WatchedStore

MUST_SAY: Final = frozenset({"QUEUED", "PAUSED", "SETTLING"})
"""States in which a job waits."""
TOLD_BY: Final = (
    *("state", "waiting_reason", "has_slot", "retry_at", "effects_open", "effects_parked", "lane"),
)
"""Attributes on which the reason depends."""


@dataclass
class Waits:
    """Of one run."""

    hub: Threads
    store: WatchedStore
    timing: Timing
    max_skew: int
    wrong: Callable[[str, str], None]
    jobs: Mapping[str, Item] = field(default_factory=dict)
    """The watch's."""
    ready: dict[str, int] = field(default_factory=dict)
    """Since when a job that could begin has waited for a worker."""
    ended: list[tuple[int, int, str]] = field(default_factory=list)
    """Waits for a worker that ended with one: how long (ms), until when, whose."""
    reasons: dict[str, str | None] = field(default_factory=dict)
    """Why each job waits; None: it does not."""
    begun: dict[str, int] = field(default_factory=dict)
    """When the newest attempt of each job began."""
    contended: dict[str, bool] = field(default_factory=dict)
    """Whether another job waited for the bulk lane at any time since then."""
    tries: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Attempts in a row that let go for a dependency at one position: (position, how many)."""

    # --- commits ------------------------------------------------------------------------------

    def committed(self, action: str, id_: str, old: Item | None, new: Item) -> None:
        """A job's item was written."""
        if action == "begin":
            self.begun[id_] = self.hub.now
            self.contended[id_] = self._others_wait(id_)
        self._line(id_, new)
        as_before = old is not None and all(old.get(name) == new.get(name) for name in TOLD_BY)
        if as_before and action != "dispatch_again":
            return
        self.reasons[id_] = self._reason(action, id_, old, new)
        self._compare(action, id_, new)

    def _line(self, id_: str, new: Item) -> None:
        """Who could begin, since when."""
        could = new["state"] == "QUEUED" and new.get("has_slot") is True
        if could and id_ not in self.ready:
            self.ready[id_] = self.hub.now
            if new["lane"] == "bulk":
                for other in self.contended:
                    self.contended[other] = self.contended[other] or other != id_
        elif not could:
            since = self.ready.pop(id_, self.hub.now)
            if new["state"] == "RUNNING":
                self.ended.append((self.hub.now - since, self.hub.now, id_))

    def _others_wait(self, id_: str) -> bool:
        return any(other != id_ and self.jobs[other]["lane"] == "bulk" for other in self.ready)

    def _reason(self, action: str, id_: str, old: Item | None, new: Item) -> str | None:
        """Why the job waits, from what has just happened to it."""
        match new["state"]:
            case "PAUSED":
                return "paused"
            case "SETTLING":
                return "effects_open" if new.get("effects_open") else "effects_parked"
            case "QUEUED" if new.get("has_slot") is not True:
                return "tenant_limit"
            case "QUEUED":
                return self._why_queued(action, id_, old, new)
            case _ if new["state"] in OVER or action == "begin":
                return None
            case _:
                return "worker_lost" if action == "dispatch_again" else self.reasons.get(id_)

    def _why_queued(self, action: str, id_: str, old: Item | None, new: Item) -> str | None:
        match action:
            case "let_go":
                return self._why_let_go(id_, new)
            case "park_dispatch":
                return "dependency_down"
            case "unpark_dispatch":
                return "lane_busy"
        was_queued = old is not None and old["state"] == "QUEUED" and old.get("has_slot") is True
        return self.reasons.get(id_) if was_queued else "lane_busy"

    def _why_let_go(self, id_: str, new: Item) -> str | None:
        process = None if self.hub.current is None else self.hub.current.process
        name = f"job {id_[-6:]}"
        if "retry_at" in new:
            position, times = self.tries.get(id_, (-1, 0))
            times = times + 1 if position == new["position"] else 1
            self.tries[id_] = int(str(new["position"])), times
            if process is not None and process.failed_at < self.begun.get(id_, 0):
                self.wrong("reasons", f"{name} waits for a retry, and no call of its worker failed")
            return "retry" if times == 1 else "dependency_down"
        if process is None:
            return str(new.get("waiting_reason", "lane_busy"))  # a write that came late
        if new.get("waiting_reason") != "slice" and (
            process.stopping or process.name.startswith("fn")
        ):
            return "lane_busy"
        self._slice_ended(name, id_)
        return "slice"

    def _slice_ended(self, name: str, id_: str) -> None:
        lasted = self.hub.now - self.begun.get(id_, self.hub.now)
        if lasted < self.timing.slice * 1000 or not self.timing.slice:
            self.wrong("slices", f"{name} gave way after {lasted} ms, before its slice was over")
        if not self.contended.get(id_):
            self.wrong("slices", f"{name} gave way, and no other job waited")

    # --- what is told -------------------------------------------------------------------------

    def _compare(self, action: str, id_: str, item: Item) -> None:
        try:
            told = waiting.wait_of(job_of(item), 0)
        except Undecodable:
            return
        self._as_known(f"{action}: job {id_[-6:]}", id_, told)

    def _as_known(self, name: str, id_: str, told: Wait | None) -> None:
        known, said = self.reasons.get(id_), None if told is None else told.reason.value
        if said != known:
            self.wrong("reasons", f"{name} says that it waits for {said}, and waits for {known}")
        if told is not None and told.since > self._latest():
            self.wrong("reasons", f"{name} waits since a time that is to come")

    def _latest(self) -> int:
        return self.hub.now + self.max_skew

    def look(self, world: World, id_: str) -> None:
        """Ask for the job as a client does, of a world without faults, and compare the answer."""
        item = self.jobs[id_]
        try:
            job = job_of(item)
            told = waiting.wait_now(world, job)
        except Undecodable:
            return
        name = f"asked for job {id_[-6:]}"
        self._look_at_reason(name, id_, item, told)
        if told is None:
            return
        if told.expected_start is not None and told.expected_start < self.hub.now - self.max_skew:
            self.wrong("reasons", f"{name} should have started at a time that is over")
        if told.ahead is not None and told.ahead != (real := self._ahead(id_, item)):
            self.wrong("reasons", f"{name} has {told.ahead} before it, not {real}")

    def _look_at_reason(self, name: str, id_: str, item: Item, told: Wait | None) -> None:
        """What more than the job's item tells, or what has changed since it was written."""
        said = None if told is None else told.reason.value
        known = self.reasons.get(id_)
        if item["state"] == "RUNNING":
            expiry = self._expiry(item)
            lost = expiry is not None and expiry <= self.hub.now
            known = "worker_lost" if lost else None
        elif known == "tenant_limit" and self._stopped(item):
            known = "tenant_stopped"
        elif known in {"retry", "dependency_down"} and self._due(item):
            known = "lane_busy"
        if said != known:
            self.wrong("reasons", f"{name}: it waits for {said}, not for {known}")

    def _expiry(self, item: Item) -> int | None:
        lease = self.store.peek(lease_key(str(item["tenant"]), str(item["subject"])))
        expires = lease.get("expires_at")
        return expires if lease.get("job_id") == item["id"] and isinstance(expires, int) else None

    def _stopped(self, item: Item) -> bool:
        return (
            self.store.peek(slots_key(str(item["tenant"]), str(item["lane"]))).get("own_limit") == 0
        )

    def _due(self, item: Item) -> bool:
        """Whether the time of the job's next try has come, and no worker has it yet."""
        return int_of(item, "waiting_since") < int_of(item, "retry_at") <= self.hub.now

    def _ahead(self, id_: str, item: Item) -> int:
        """Of held jobs, those of its tenant in its lane that are older; else all that could have
        started in the bulk lane before it could."""
        if item.get("has_slot") is not True:
            return sum(
                str(other["id"]) < id_ and held(other) and _same(other, item, "tenant", "lane")
                for other in self.jobs.values()
            )
        place = _place(item)
        return sum(_in_line(each) and _place(each) < place for each in self.jobs.values())


def _same(one: Item, other: Item, *names: str) -> bool:
    return all(one[name] == other[name] for name in names)


def _in_line(item: Item) -> bool:
    """Whether the job runs as soon as a slot of the bulk lane is free."""
    if item["lane"] != "bulk":
        return False
    if item["state"] == "RUNNING":
        return item.get("waiting_reason") == "worker_lost"
    return item["state"] == "QUEUED" and item.get("has_slot") is True


def _place(item: Item) -> tuple[int, str]:
    return max(int_of(item, "waiting_since"), int_of(item, "retry_at")), str(item["id"])
