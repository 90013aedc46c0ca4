"""Watches every committed write, and every deleted message, against the rules of the design.

Written from the rules, not from the code under test: it knows items by their attributes and
keeps books of its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from handlers.jobs.words.messages import UnreadableMessage, read_pointer
from handlers.jobs.words.states import EDGES, State
from handlers.jobs.words.writes import Check, Equals, Key, Table

from .items import (
    DONE,
    OVER,
    WORKED_ON,
    held,
    int_of,
    lease_key,
    needs_no_message,
    place_in_source,
    short,
    slots_key,
)
from .turns import Turns
from .waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from handlers.jobs.words.job import Lane
    from handlers.jobs.words.limits import Limits
    from handlers.jobs.words.timing import Timing
    from handlers.jobs.words.writes import Item, Value, Write
    from handlers.testing.lane_queue import MemoryLaneQueue

    from .selecting import History, Query
    from .threads import Thread, Threads
    from .watched_store import WatchedStore

RETRIES: Final = frozenset({"claim_dispatch", "dispatch_later", "park_dispatch", "unpark_dispatch"})
"""Transactions on a dispatch row that is there already."""


@dataclass(frozen=True)
class Violation:
    rule: str
    what: str
    at: int

    def __str__(self) -> str:
        return f"[{self.rule}] {self.what}"


@dataclass
class Touched:
    """What one transaction was about."""

    subjects: set[tuple[str, str]] = field(default_factory=set)
    counters: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Tenants, with the lanes in which they took a slot."""
    records: list[Key] = field(default_factory=list)
    progress: tuple[Item, Item] | None = None
    """The job whose checkpoint moved, before and after."""


class Watch:
    """The books, and what was found wrong."""

    def __init__(
        self,
        hub: Threads,
        store: WatchedStore,
        queues: Mapping[Lane, MemoryLaneQueue],
        timing: Timing,
        limits: Limits,
        max_skew: int,
    ) -> None:
        self.hub = hub
        self.store = store
        self.queues = queues
        self.timing = timing
        self.limits = limits
        self.max_skew = max_skew
        self.violations: list[Violation] = []
        self.jobs: dict[str, Item] = {}
        self.changes: dict[tuple[str, str], list[str]] = defaultdict(list)
        """Who changed a record, in order, by (tenant, record id)."""
        self.fences: dict[Key, int] = defaultdict(int)
        self.beating: dict[Thread, tuple[Value, ...]] = {}
        """Beats on their way: whose, and for which subject and fence."""
        self.dispatched: set[Key] = set()
        self.moved: Callable[[str, str], None] = lambda _id, _state: None
        """Told of every job that changes its state."""
        self.taking: Callable[[], None] = lambda: None
        """Told when somebody is about to take a subject."""
        self.stale_deletes_work = False
        self.decided: set[str] = set()
        """Receipt handles whose decision the queue has taken."""
        self.early: set[str] = set()
        """Ids of messages that the queue delivered once more while they were in flight."""
        self.received: dict[str, int] = {}
        """When a receipt handle was handed out."""
        self.excused: dict[str, int] = {}
        """When a job last was in a state that needs no message."""
        self.removed: set[tuple[str, str]] = set()
        """Records that a job removed and nobody has made again."""
        self.ever_gone: set[tuple[str, str]] = set()
        """Records that were removed at any time."""
        self.damaged: dict[str, str] = {}
        """Jobs whose item cannot be decoded, each with the attribute that is to blame."""
        self.waits = Waits(hub, store, timing, max_skew, self.wrong, self.jobs)
        self.turns = Turns(hub, round(timing.slice * 1000), self.wrong)
        self.history: History | None = None
        """Kept where jobs have queries."""
        self.query_of: Callable[[Item], Query | None] = lambda _job: None
        self.edges: dict[tuple[str, str], int] = defaultdict(int)
        self.seen: dict[str, int] = defaultdict(int)

    def wrong(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what, self.hub.now))

    # --- calls in flight ----------------------------------------------------------------------

    def sending(self, thread: Thread | None, action: str, writes: Sequence[Write]) -> None:
        if action in {"begin", "take_over"}:
            self.taking()
        if action == "beat" and thread is not None:
            fences = [
                c.value for c in writes[0].when if isinstance(c, Equals) and c.name == "fence"
            ]
            self.beating[thread] = (writes[0].key.pk, *fences)

    def answered(self, thread: Thread | None) -> None:
        if thread is not None:
            self.beating.pop(thread, None)

    # --- committed transactions ---------------------------------------------------------------

    def committed(
        self,
        action: str,
        writes: Sequence[Write],
        before: Mapping[Key, Item | None],
        after: Mapping[Key, Item],
    ) -> None:
        self.seen[action] += 1
        touched = Touched()
        for write in writes:
            if isinstance(write, Check):
                continue
            if write.key.table is Table.RECORDS:
                touched.records.append(write.key)
                if write.key not in after:
                    self.removed.add((write.key.pk, write.key.sk))
                    self.ever_gone.add((write.key.pk, write.key.sk))
                self._version(action, write.key, before[write.key], after.get(write.key))
            else:
                self._control(action, write.key, before[write.key], after.get(write.key), touched)
        self._selected(touched, before, after)
        if touched.progress is not None:
            self._chunk(*touched.progress, touched.records)
        elif touched.records and action not in {"outside", "load"}:
            self.wrong("1", f"{action} changed records without a checkpoint")
        for subject in touched.subjects:
            self._subject(action, *subject)
        for tenant, lanes in touched.counters.items():
            self._counters(action, tenant, lanes)

    def _version(self, action: str, key: Key, old: Item | None, new: Item | None) -> None:
        """One that does not rise was written over what somebody else had changed since."""
        if old and new and int_of(new, "version") <= int_of(old, "version"):
            versions = f"{int_of(old, 'version')} to {int_of(new, 'version')}"
            self.wrong("4", f"{action}: record {key.sk} went from version {versions}")

    def _control(
        self, action: str, key: Key, old: Item | None, new: Item | None, touched: Touched
    ) -> None:
        if key.sk in {"JOB", "LEASE"} and new is None:
            self.wrong("2", f"{action}: item {key.pk} {key.sk} was deleted")
            return
        new = new or {}
        if key.sk == "JOB":
            self._job(action, old, new)
            touched.counters[str(new["tenant"])] |= set()
            if old is not None and new["position"] != old["position"]:
                touched.progress = (old, new)
        elif key.sk == "LEASE":
            self._lease(action, key, old or {}, new)
        elif key.sk.startswith("SLOTS"):
            taken = int_of(new, "in_flight") > int_of(old or {}, "in_flight")
            lanes = {key.sk.removeprefix("SLOTS#")} if taken else set()
            touched.counters[key.pk.removeprefix("TENANT#")] |= lanes
        elif key.sk == "ACTIVE":
            more = int_of(new, "jobs") > int_of(old or {}, "jobs")
            touched.counters[key.pk.removeprefix("TENANT#")] |= {"ACTIVE"} if more else set()
        elif key.sk.startswith("DISPATCH") and new and action not in RETRIES:
            if key in self.dispatched:
                self.wrong("5", f"{action}: {key.sk} of job {short(key.pk)} is written again")
            self.dispatched.add(key)
        if key.sk in {"JOB", "LEASE"}:
            touched.subjects.add((str(new["tenant"]), str(new["subject"])))

    def _job(self, action: str, old: Item | None, new: Item) -> None:
        id_ = str(new["id"])
        self.jobs[id_] = new
        was, is_ = None if old is None else str(old["state"]), str(new["state"])
        name = f"{action}: job {short(id_)}"
        self.waits.committed(action, id_, old, new)
        self.turns.committed(id_, new)
        if was is None:
            if is_ != "QUEUED":
                self.wrong("7", f"{name} created as {is_}")
            return
        assert old is not None
        if needs_no_message(old):
            self.excused[id_] = self.hub.now
        if was != is_ or int_of(new, "attempt") > int_of(old, "attempt"):
            self._edge(name, id_, was, is_)
        for rule, number in (("2", "fence"), ("5", "dispatches")):
            if int_of(new, number) < int_of(old, number):
                self.wrong(rule, f"{name}: {number} fell from {old[number]} to {new[number]}")
        self._acted(action, name, old, new)
        self._counts(name, old, new)
        if (is_ in OVER and was not in OVER) or is_ == "PAUSED" or action == "let_go":
            self._concluded(action, old)

    def _acted(self, action: str, name: str, old: Item, new: Item) -> None:
        if action == "begin":
            self._began(name, new)
        if action == "bury":
            self._buried(name, old)
        if int_of(new, "attempt") > self.timing.lane(str(new["lane"])).max_attempts:
            self.wrong("3", f"{name} has attempt {new['attempt']}")

    def _began(self, name: str, new: Item) -> None:
        """A function has neither the time nor the queue of a bulk job."""
        me = self.hub.current
        if me is None:
            return  # a begin that came late
        of = "small" if me.process.name.startswith("fn") else "bulk"
        if new["lane"] != of:
            self.wrong("lanes", f"{name} of the {new['lane']} lane begins on a {of} worker")

    def _buried(self, name: str, old: Item) -> None:
        """A job is ended as undecodable only where no worker may run it."""
        expires = self.store.peek(lease_key(str(old["tenant"]), str(old["subject"]))).get(
            "expires_at"
        )
        if old["state"] in WORKED_ON and isinstance(expires, int) and expires > self._latest():
            self.wrong("one holder", f"{name} is ended, and its lease has not expired")

    def _edge(self, name: str, id_: str, was: str, is_: str) -> None:
        self.edges[was, is_] += 1
        if (State(was), State(is_)) not in EDGES:
            self.wrong("7", f"{name} went {was} -> {is_}")
        if was != is_:
            self.moved(id_, is_)

    def _counts(self, name: str, old: Item, new: Item) -> None:
        for count in ("succeeded", "failed", "skipped", "position"):
            if int_of(new, count) < int_of(old, count):
                self.wrong("6", f"{name}: {count} fell from {old[count]} to {new[count]}")
        if place_in_source(new) < place_in_source(old):
            self.wrong("6", f"{name}: cursor fell from {old['cursor']} to {new['cursor']}")
        done = sum(int_of(new, count) for count in ("succeeded", "failed", "skipped"))
        if done != int_of(new, "position") or ("total" in new and done > int_of(new, "total")):
            self.wrong("6", f"{name}: {done} settled at {new['position']} of {new.get('total')}")

    def _concluded(self, action: str, old: Item) -> None:
        """A worker ends its attempt when no beat of it is on its way any more (section 5)."""
        me = self.hub.current
        if me is None:
            return
        mine = (lease_key(str(old["tenant"]), str(old["subject"])).pk, int_of(old, "fence"))
        for thread, beat in self.beating.items():
            if beat == mine and thread.parent is me:
                self.wrong("heartbeat", f"{action} while a beat of the attempt is in flight")

    def _lease(self, action: str, key: Key, old: Item, new: Item) -> None:
        fence = int_of(new, "fence")
        if fence < self.fences[key]:
            self.wrong("2", f"{action}: fence of {key.pk} fell from {self.fences[key]} to {fence}")
        before, after = old.get("job_id"), new.get("job_id")
        if after is not None and after != before and fence <= self.fences[key]:
            self.wrong("2", f"{action}: new holder of {key.pk} with the fence {fence} again")
        self.fences[key] = max(fence, self.fences[key])
        expires = old.get("expires_at")
        if before is not None and after is not None and before != after:
            self._taken_over(action, key, expires)
        if action == "begin" and isinstance(expires, int) and expires > self._latest():
            self.wrong("two holders", f"{action} on {key.pk} whose lease has not expired")

    def _latest(self) -> int:
        """The latest time any clock may show."""
        return self.hub.now + self.max_skew

    def _taken_over(self, action: str, key: Key, expires: object) -> None:
        grace = int(self.timing.takeover_grace * 1000)
        if not isinstance(expires, int) or expires + grace > self._latest():
            self.wrong("two holders", f"{action} of {key.pk} before its holder's grace was over")

    def _chunk(self, old: Item, new: Item, records: Sequence[Key]) -> None:
        id_ = str(new["id"])
        key = lease_key(str(new["tenant"]), str(new["subject"]))
        name = f"job {short(id_)} chunk {old['position']}-{new['position']}"
        fence = int_of(new, "committed_fence")
        if fence < self.fences[key]:
            self.wrong("2", f"{name} written with fence {fence} after {self.fences[key]} was used")
        if new["state"] != "RUNNING":
            self.wrong("2", f"{name} written while {new['state']}")
        changed = int_of(new, "succeeded") - int_of(old, "succeeded")
        if changed != len(records):
            self.wrong("6", f"{name} counts {changed} changes and makes {len(records)}")
        for record in records:
            history = self.changes[record.pk, record.sk]
            if id_ in history:
                between = history[history.index(id_) :]
                if set(between) == {id_}:
                    self.wrong("1", f"{name} changes record {record.sk} again")
            history.append(id_)

    def _selected(
        self, touched: Touched, before: Mapping[Key, Item | None], after: Mapping[Key, Item]
    ) -> None:
        """A job over a query changes only what matches it."""
        if self.history is None:
            return
        job = None if touched.progress is None else touched.progress[1]
        query = self.query_of(job) if job and "query" in job else None
        for record in touched.records:
            by = None if job is None else str(job["id"])
            self.history.wrote(record.pk, record.sk, self.hub.now, after.get(record), by)
            if query is not None and not query.matches(before[record]):
                self.wrong("1", f"job {short(by or '')} changes {record.sk}, not selected by it")

    # --- what must hold between items ---------------------------------------------------------

    def _subject(self, action: str, tenant: str, subject: str) -> None:
        name = f"{action}: subject {tenant}/{subject}"
        active = [
            job
            for job in self.jobs.values()
            if job["tenant"] == tenant and job["subject"] == subject and job["state"] not in DONE
        ]
        lease = self.store.peek(lease_key(tenant, subject))
        holder = lease.get("job_id")
        if len(active) > 1:
            ids = ", ".join(f"{short(str(job['id']))} {job['state']}" for job in active)
            self.wrong("two holders", f"{name} has the active jobs {ids}")
            return
        if not active:
            if holder is not None and holder not in self.damaged:
                self.wrong("3", f"{name} is held by finished job {short(str(holder))}")
            return
        [job] = active
        if holder != job["id"]:
            self.wrong("3", f"{name} is not held by its active job {short(str(job['id']))}")
        elif lease.get("fence") != job["fence"]:
            self.wrong("2", f"{name} has fence {lease.get('fence')}, its job {job['fence']}")
        elif (job["state"] in WORKED_ON) != ("expires_at" in lease):
            expiry = "an" if "expires_at" in lease else "no"
            self.wrong("3", f"{name} has {expiry} expiry while its job is {job['state']}")

    def _counters(self, action: str, tenant: str, taken: set[str]) -> None:
        for lane in self.queues:
            slots = self.store.peek(slots_key(tenant, lane))
            jobs = [j for j in self.jobs.values() if j["tenant"] == tenant and j["lane"] == lane]
            for job in jobs:
                due = job["state"] not in DONE and job["state"] != "PAUSED" and not held(job)
                if job.get("has_slot") is not due:
                    self.wrong("3", f"{action}: job {short(str(job['id']))} slot is {not due}")
            flying, waiting = int_of(slots, "in_flight"), int_of(slots, "held")
            real = sum(job.get("has_slot") is True for job in jobs)
            if flying != real:
                self.wrong("3", f"{action}: {tenant}/{lane} counts {flying} in flight, not {real}")
            if waiting != (real := sum(held(job) for job in jobs)):
                self.wrong("3", f"{action}: {tenant}/{lane} counts {waiting} held, not {real}")
            limit = slots.get("own_limit", self.limits.tenant_slots(lane))
            assert isinstance(limit, int)
            if action != "let_go" and lane in taken and flying > limit:
                self.wrong("3", f"{action}: {tenant}/{lane} has {flying} in flight of {limit}")
        self._active(action, tenant, more="ACTIVE" in taken)

    def _active(self, action: str, tenant: str, *, more: bool) -> None:
        item = self.store.peek(Key(f"TENANT#{tenant}", "ACTIVE"))
        counted = int_of(item, "jobs")
        real = sum(j["tenant"] == tenant and j["state"] not in DONE for j in self.jobs.values())
        if counted != real:
            self.wrong("3", f"{action}: {tenant} counts {counted} active jobs, not {real}")
        limit = item.get("own_limit", self.limits.max_active_jobs_per_tenant)
        assert isinstance(limit, int)
        if more and counted > limit:
            self.wrong("3", f"{action}: {tenant} has {counted} active jobs of {limit}")

    # --- deleted messages ---------------------------------------------------------------------

    def delete(self, lane: Lane, receipt: str) -> None:
        """Delete the message, if the queue would, and ask whether that was right."""
        queue = self.queues[lane]
        message = queue._stored.get(queue._receipts.get(receipt, ""))
        if message is None:
            return
        if message.receipt != receipt and not self.stale_deletes_work:
            return
        queue.delete(message.receipt or receipt)
        self.deleted(message.body, self.received[receipt])

    def deleted(self, body: str, received: int) -> None:
        """Rule 5. What was decided from a state the job has left since is fine: leaving that state
        wrote whatever goes on with the job."""
        try:
            id_ = read_pointer(body).job_id
        except UnreadableMessage:
            self.seen["a foreign message deleted"] += 1
            return
        job = self.jobs.get(id_)
        if job is None:
            self.wrong("5", f"message of unknown job {short(id_)} deleted")
            return
        excused = needs_no_message(job) or self.excused.get(id_, 0) >= received
        if not excused and not self.announced(id_):
            left = " and not cleaned up" if job["state"] in OVER else ""
            name = f"the only message of job {short(id_)}"
            self.wrong("5", f"{name} deleted while it is {job['state']}{left}")

    def announced(self, id_: str) -> bool:
        """Whether a message or a dispatch row of the job exists."""
        if any(f'"{id_}"' in m.body for q in self.queues.values() for m in q._stored.values()):
            return True
        return any(k.pk == f"JOB#{id_}" and k.sk.startswith("DISPATCH") for k in self.store._items)
