"""Ending a job whose item cannot be decoded, so that its subject does not stay taken for ever.

During a deploy, older code meets jobs of newer code. So a job is ended only when its lease has
expired, and only if it has not moved since it was read; one with words that only newer code may
know is left to that code first (``rollout``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows, publish_now
from ..storage import control_table
from ..storage.transaction import Rejected, Transaction, execute, retry_transient
from ..transitions.conditions import JOB, LEASE
from ..transitions.quotas import ACTIVE, HELD, IN_FLIGHT, JOBS, SLOTS
from ..words.errors import Undecodable
from ..words.event import EventType
from ..words.job import EndReason, Lane, Waiting
from ..words.states import SUBJECT_TAKEN, State, reason_for
from ..words.writes import Check, Equals, Index, Update, as_stored
from .admission import admit_held
from .rollout import left_to_newer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..words.ports import World
    from ..words.writes import Condition, Item, Key, When, Write

# A job that was asked to cancel or pause takes that edge; a paused job then goes on to its end.
WAY_OUT: Final = {
    State.QUEUED: State.FAILED,
    State.RUNNING: State.FAILED,
    State.SETTLING: State.FAILED,
    State.CANCELLING: State.CANCELLED,
    State.PAUSING: State.PAUSED,
    State.PAUSED: State.CANCELLED,
}
EXPIRY: Final = ("expires_at", *control_table.NOT_DUE)


class UndecodableResult(StrEnum):
    """The result of ending an undecodable job."""

    DONE = "done"
    """The job has ended, and holds nothing."""
    MOVED = "moved"
    """The job was moved since it was read: a worker of newer code may run it and hold its
    subject."""
    LEFT = "left"
    """Left to workers of a newer version, which may be able to read it."""
    HELD = "held"
    """Its lease has not expired: a worker of newer code may be running it."""


def end_undecodable(
    world: World,
    job_id: str,
    item: Item,
    why: str,
    *,
    lease_key: Key | None = None,
    new_words: bool = False,
) -> UndecodableResult:
    """End a job by the readable part of its raw item; safe to repeat.

    lease_key: the key of the lease that names the job, if the caller knows it; else the item has to
    say it. new_words: see ``Undecodable``; such a job is left to newer workers first. Raises
    Transient.
    """
    key = lease_key or _lease_key(item)
    if key is None:
        world.telemetry.log("subject_unknown", job_id=job_id)
    lease = None if key is None else _lease(world, job_id, key)
    if lease is not None and lease.lasts(world.runtime.now()):
        world.telemetry.log("burial_waits", job_id=job_id, why=why)
        return UndecodableResult.HELD
    if new_words and left_to_newer(world, job_id, item, why):
        return UndecodableResult.LEFT
    world.telemetry.log("job_undecodable", job_id=job_id, why=why)
    return _UndecodableJob(world, job_id, item, why, lease).end()


@dataclass(frozen=True)
class _HeldLease:
    """The lease that the job holds, as its item was read; the lease may be undecodable, too."""

    key: Key
    item: Item

    def lasts(self, now: int) -> bool:
        """Whether the lease has not expired. A lease without an expiry is that of a job that no
        worker runs."""
        at = self.item.get("expires_at")
        if at is not None and not isinstance(at, int):
            # A beat writes both times; this one lies after the expiry.
            at = self.item.get(Index.DUE.sk)
        return isinstance(at, int) and at > now

    @property
    def mine(self) -> When:
        return (Equals("job_id", self.item["job_id"]), as_stored(self.item, "fence"))

    @property
    def expiry(self) -> Condition:
        return as_stored(self.item, "expires_at")


@dataclass(frozen=True)
class _UndecodableJob:
    world: World
    job_id: str
    item: Item
    why: str
    lease: _HeldLease | None

    def end(self) -> UndecodableResult:
        state = _state(self.item)
        after = WAY_OUT.get(state) if state else State.FAILED
        if after is None:
            done = self._clean_up() and self._release()
            return UndecodableResult.DONE if done else UndecodableResult.MOVED
        if not self._move(state, after):
            return UndecodableResult.MOVED
        return self._moved_to(after).end()

    def _moved_to(self, state: State) -> _UndecodableJob:
        """The same job, with what the move to this state has written."""
        item = {**self.item, "state": state.value, "has_slot": False}
        lease = self.lease
        if self.item.get("state") == State.PAUSED.value:
            lease = None
        elif lease is not None and state is State.PAUSED:
            lease = replace(lease, item={n: v for n, v in lease.item.items() if n not in EXPIRY})
        return replace(self, item=item, lease=lease)

    def _move(self, state: State | None, after: State) -> bool:
        """Move the job to the state. Closes: ending a job that a worker has begun or resumed since
        it was read (the fence rises with each attempt), or whose worker has beaten since, and
        giving back the place in line of a held job that was admitted since (no fence rises)."""
        if state is not None:
            reason_for(state, after)
        ended = self._ended() if after.terminal else {}
        writes: dict[str, Write] = {
            JOB: Update(
                control_table.job_key(self.job_id),
                set={"state": after.value, "message": self.why, "has_slot": False, **ended},
                remove=(*control_table.NOT_HELD, *control_table.NOT_DUE),
                when=self._as_read,
            )
        }
        if self.lease is not None:
            key, when = self.lease.key, (*self.lease.mine, self.lease.expiry)
            if after is State.PAUSED:
                # It can stay paused, if this process dies now: recovery need not look at it.
                writes[LEASE] = Update(key, remove=EXPIRY, when=when)
            elif state is State.PAUSED:
                # Nothing would lead recovery to a lease that is left here.
                writes[LEASE] = self._freed(when)
            else:
                writes[LEASE] = Check(key, when)
        writes |= _counts(self.item, state, after)
        writes |= self._end_event(after, ended) if ended else {}
        transaction = Transaction("bury", writes, self._is_now(after))
        if not self._execute(transaction):
            return False
        tenant, lane = self.item.get("tenant"), _lane(self.item)
        if SLOTS in writes and isinstance(tenant, str) and lane:
            admit_held(self.world, tenant, lane)
        publish_now(self.world, transaction)
        return True

    @property
    def _as_read(self) -> When:
        """The job was not moved since it was read, and the counters hold the same for it
        (``_counts``)."""
        names = ("state", "fence", "has_slot", "waiting_reason")
        return tuple(as_stored(self.item, name) for name in names)

    def _ended(self) -> Item:
        now = self.world.runtime.now()
        return {
            "end_reason": EndReason.UNDECODABLE.value,
            "finished_at": now,
            "expires_at_seconds": self.world.timing.history_ends(now),
        }

    def _end_event(self, after: State, ended: Item) -> dict[str, Write]:
        """The rows of the job's end, if its item still describes it well enough. A job that had
        ended before, in a state of newer code, got its event then."""
        if "finished_at" in self.item:
            return {}
        known: Item = {
            "id": self.job_id,
            "state": after.value,
            "waiting_reason": None,
            **ended,
        }
        try:
            job = control_table.readable_part(self.item, known)
        except Undecodable as error:
            self.world.telemetry.log("end_not_told", job_id=self.job_id, why=str(error))
            return {}
        return event_rows(self.world, job, EventType.ENDED)

    def _clean_up(self) -> bool:
        """Delete the id list that an ended job left. Raises Transient. Closes: cleaning up after a
        job that newer code has retried since it was read."""
        if self.item.get("cleanup") is not True:
            return True
        name = self.item.get("payload")
        if isinstance(name, str):
            retry_transient(self.world, lambda: self.world.payloads.delete(name))
        cleaned = Update(
            control_table.job_key(self.job_id),
            set={"cleanup": False},
            remove=control_table.NOT_DUE,
            when=self._as_read,
        )
        return self._execute(Transaction("cleaned_up", {JOB: cleaned}))

    def _release(self) -> bool:
        """Free the subject if the job still holds it. Closes: a retry by newer code,
        which can read the job, taking the subject again."""
        if self.lease is None:
            return True
        writes: dict[str, Write] = {
            JOB: Check(control_table.job_key(self.job_id), when=self._as_read),
            LEASE: self._freed(self.lease.mine),
        }
        return self._execute(Transaction("release", writes))

    def _freed(self, when: When) -> Update:
        assert self.lease is not None
        fence = readable_fence(self.world, self.lease.item, self.item)
        return Update(self.lease.key, set=fence, remove=("job_id", *EXPIRY), when=when)

    def _execute(self, transaction: Transaction) -> bool:
        try:
            execute(self.world, transaction)
        except Rejected as rejected:
            self.world.telemetry.log("burial_overtaken", job_id=self.job_id, why=str(rejected))
            return False
        return True

    def _is_now(self, state: State) -> Callable[[World], bool]:
        key = control_table.job_key(self.job_id)
        return lambda world: (world.store.get(key) or {}).get("state") == state.value


def _state(item: Item) -> State | None:
    try:
        return State(str(item.get("state")))
    except ValueError:
        return None


def _lane(item: Item) -> Lane | None:
    try:
        return Lane(str(item.get("lane")))
    except ValueError:
        return None


def _lease_key(item: Item) -> Key | None:
    """The key of the subject's lease; None when the item does not say which subject."""
    tenant, subject = item.get("tenant"), item.get("subject")
    if not isinstance(tenant, str) or not isinstance(subject, str):
        return None
    return control_table.lease_key(tenant, subject)


def _lease(world: World, job_id: str, key: Key) -> _HeldLease | None:
    item = retry_transient(world, lambda: world.store.get(key))
    return None if item is None or item.get("job_id") != job_id else _HeldLease(key, item)


def readable_fence(world: World, lease: Item, holder: Item) -> Item:
    """The attributes to set on a lease that is freed. An unreadable fence starts again from the
    holder's or the clock, like a subject's first one: otherwise no job's fence could ever be above
    it, and no job could take the subject."""
    if isinstance(lease.get("fence"), int):
        return {}
    known, now = holder.get("fence"), world.runtime.now()
    return {"fence": max(known, now) if isinstance(known, int) else now}


def _counts(item: Item, state: State | None, after: State) -> dict[str, Write]:
    """The writes that give back what the tenant's counters hold for the job, as far as the item
    says."""
    writes: dict[str, Write] = {}
    tenant, lane = item.get("tenant"), _lane(item)
    if not isinstance(tenant, str):
        return writes
    if lane and state is not State.PAUSED:
        held = item.get("waiting_reason") == Waiting.TENANT_LIMIT.value
        count = IN_FLIGHT if item.get("has_slot") is True else HELD if held else None
        if count is not None:
            writes[SLOTS] = Update(control_table.slots_key(tenant, lane), add={count: -1})
    active = "finished_at" not in item if state is None else state in SUBJECT_TAKEN
    if active and after.terminal:
        writes[ACTIVE] = Update(control_table.active_key(tenant), add={JOBS: -1})
    return writes
