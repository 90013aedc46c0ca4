"""The ports as one process sees them: every call travels, may fail, and may be its last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from handlers.jobs.words.errors import OutcomeUnknown, Reason, Refused, Transient, Why
from handlers.jobs.words.writes import Check, Table

from .faults import Fault, Kind
from .ports import PayloadsPort, QueuePort, RecordsPort, StorePort
from .threads import Killed

if TYPE_CHECKING:
    from handlers.jobs.words.filters import Filter
    from handlers.jobs.words.job import Lane
    from handlers.jobs.words.messages import Message
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import Count, Depth, Matches, Stored, UploadAddress
    from handlers.jobs.words.writes import Item, Key, Write
    from handlers.testing.lane_queue import MemoryLaneQueue
    from handlers.testing.payload_store import MemoryPayloadStore
    from handlers.testing.record_query import MemoryRecordQuery
    from handlers.testing.record_store import MemoryRecordStore
    from handlers.testing.uploads import MemoryUploadStore

    from .faults import Faults
    from .hub import Hub, Process
    from .watch import Watch
    from .watched_store import WatchedStore

T = TypeVar("T")
NEVER_LATE = frozenset({"create", "take_over"})
"""docs/simulation.md says why."""
CONTENTION = frozenset({Why.CONFLICT, Why.THROTTLED})
STORE, QUEUES, PAYLOADS = "store", "queues", "payloads"


@dataclass(frozen=True)
class Line:
    """What a process's calls go through."""

    hub: Hub
    process: Process
    faults: Faults

    def call(
        self,
        kind: Kind,
        what: str,
        act: Callable[[], T],
        *,
        place: str = "",
        detail: object = "",
        instead: Callable[[Fault], None] | None = None,
    ) -> T:
        """Make the call. place: the dependency that can be down as a whole. instead: raises for
        the faults that this port answers in its own way."""
        self._fall_asleep(what)
        self._travel()
        fault = self.faults.pick(kind, what)
        if any(self.faults.is_down(each, self.hub.now) for each in (what, place)):
            fault = Fault.TRANSIENT
        if fault is Fault.CRASH_BEFORE:
            self._die(what, fault)
        if fault in {Fault.TRANSIENT, Fault.LOST_BEFORE}:
            self._failed(what, fault)
            raise Transient if fault is Fault.TRANSIENT else OutcomeUnknown
        try:
            if instead is not None:
                instead(fault)
            result = act()
        except Exception as error:
            self._failed(what, (detail, error), own=_is_refusal(error))
            raise
        if fault is Fault.CRASH_AFTER:
            self._die(what, fault)
        self.hub.note(what, (detail, fault))
        self._travel()
        if fault is Fault.LOST_AFTER:
            self.process.failed_at = self.hub.now
            raise Transient if kind is Kind.OTHER else OutcomeUnknown
        return result

    def _failed(self, what: str, how: object, *, own: bool = False) -> None:
        """own: the dependency answered, and what was asked for does not hold."""
        self.hub.note(what, how)
        self._travel()
        if not own:
            self.process.failed_at = self.hub.now

    def _travel(self) -> None:
        if self.process.dead:
            raise Killed
        self.hub.park(self.faults.way())

    def _fall_asleep(self, what: str) -> None:
        if slept := self.faults.sleep(what):
            self.process.asleep_until = self.hub.now + slept
            self.hub.note("falls asleep", slept)

    def _die(self, what: str, fault: Fault) -> None:
        self.hub.note(what, fault)
        self.hub.kill(self.process)
        raise Killed


def _is_refusal(error: Exception) -> bool:
    if not isinstance(error, Refused):
        return False
    return not any(reason and reason.why in CONTENTION for reason in error.reasons)


@dataclass(frozen=True)
class SimStore(StorePort):
    line: Line
    inner: WatchedStore
    watch: Watch

    @property
    def threads(self) -> Hub:
        return self.line.hub

    def read(self, what: str, where: str, act: Callable[[], T]) -> T:
        return self.line.call(Kind.READ, what, act, place=STORE, detail=where)

    def look_up(self, key: Key) -> Item | None:
        if self.line.faults.is_stuck(key.pk, self.line.hub.now):
            raise Transient
        return super().look_up(key)

    def write(self, action: str, writes: Sequence[Write]) -> None:
        self.line.call(
            Kind.TRANSACT,
            action,
            lambda: self.inner.transact(action, writes),
            place=STORE,
            detail=writes,
            instead=partial(self._refuse, action, writes),
        )

    def _refuse(self, action: str, writes: Sequence[Write], fault: Fault) -> None:
        """Contention beside the real objections; a record that refuses to be written."""
        reasons = self._refusing(writes)
        now, faults = self.line.hub.now, self.line.faults
        if any(hot := [faults.is_stuck(write.key.pk, now) for write in writes]):
            real = self.inner.objections(writes)
            stuck = Reason(Why.THROTTLED)
            raise Refused([stuck if is_ else it for is_, it in zip(hot, real, strict=True)])
        if fault in {Fault.CONFLICT, Fault.THROTTLED}:
            why = Why.CONFLICT if fault is Fault.CONFLICT else Why.THROTTLED
            real = self.inner.objections(writes)
            at = self.line.hub.random.randrange(len(writes))
            raise Refused([Reason(why) if i == at else reason for i, reason in enumerate(real)])
        if fault is Fault.LATE:
            if action in NEVER_LATE or reasons:
                raise OutcomeUnknown
            delay = self.line.hub.random.choice((20, 200, 2000, 9000))
            self.line.hub.after(delay, partial(self._late, action, writes))
            self.line.hub.note("will come late", delay)
            raise OutcomeUnknown
        if reasons:
            raise Refused([reasons.get(index) for index in range(len(writes))])

    def _refusing(self, writes: Sequence[Write]) -> dict[int, Reason]:
        return {
            index: Reason(Why.INVALID, message="too large")
            for index, write in enumerate(writes)
            if write.key.table is Table.RECORDS
            and write.key.sk.endswith("!")
            and not isinstance(write, Check)
        }

    def _late(self, action: str, writes: Sequence[Write]) -> None:
        try:
            self.inner.transact(action, writes)
        except Refused as refused:
            self.line.hub.note(f"late {action}", refused)
        else:
            self.line.hub.note(f"late {action}", writes)


@dataclass(frozen=True)
class SimRecords(RecordsPort):
    line: Line
    inner: MemoryRecordStore

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        if self.line.faults.reads:
            self.line.hub.park(self.line.faults.reads)
        return self.line.call(
            Kind.READ,
            "read records",
            lambda: self.inner.read(tenant, ids),
            place=STORE,
            detail=ids,
        )


@dataclass(frozen=True)
class SimQuery:
    """Queries over an index that lags."""

    line: Line
    inner: MemoryRecordQuery
    store: WatchedStore

    @property
    def sorts(self) -> frozenset[str]:
        return self.inner.sorts

    @property
    def searchable(self) -> frozenset[str] | None:
        return self.inner.searchable

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        return self.line.call(
            Kind.READ,
            "query records",
            lambda: self._page(tenant, filter_, cursor, limit),
            place=STORE,
            detail=(filter_.to_json(), cursor),
        )

    def _page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        with self.store.lagging():
            return self.inner.page(tenant, filter_, cursor, limit)

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        raise NotImplementedError("nobody previews a job here")


@dataclass(frozen=True)
class SimUploads:
    line: Line
    inner: MemoryUploadStore

    def address(self, name: str, notes: Mapping[str, str], *, seconds: int) -> UploadAddress:
        return self.inner.address(name, notes, seconds=seconds)

    def look(self, name: str) -> Stored | None:
        return self.line.call(
            Kind.READ, "look at file", lambda: self.inner.look(name), place=PAYLOADS, detail=name
        )

    def read(self, name: str, version: str, offset: int, length: int) -> bytes:
        return self.line.call(
            Kind.READ,
            "read file",
            lambda: self.inner.read(name, version, offset, length),
            place=PAYLOADS,
            detail=(name, offset),
        )


@dataclass(frozen=True)
class SimQueue(QueuePort):
    line: Line
    inner: MemoryLaneQueue
    lane: Lane
    watch: Watch

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        return self.line.call(
            Kind.SEND,
            f"send {self.lane}",
            partial(self._send, messages),
            place=QUEUES,
            detail=messages,
        )

    def _send(self, messages: Sequence[Message]) -> frozenset[int]:
        random, faults = self.line.hub.random, self.line.faults
        if not faults.off and random.random() < faults.refused:
            self.line.hub.note("not accepted")
            return frozenset(range(len(messages)))
        result = self.inner.send(messages)
        if not faults.off and random.random() < faults.duplicates / 4:
            self.line.hub.note("arrives twice")
            self.inner.send(messages)
        return result

    def set_visibility(self, receipt: str, seconds: int) -> None:
        self.line.call(
            Kind.OTHER,
            "set visibility",
            lambda: self._with_own(receipt, lambda: self.inner.set_visibility(receipt, seconds)),
            place=QUEUES,
            detail=(receipt, seconds),
        )

    def delete(self, receipt: str) -> None:
        self.line.call(
            Kind.OTHER,
            "delete message",
            lambda: self._with_own(receipt, lambda: self.watch.delete(self.lane, receipt)),
            place=QUEUES,
            detail=receipt,
        )

    def _with_own(self, receipt: str, act: Callable[[], None]) -> None:
        """SQS refuses a handle of another queue."""
        if not receipt.startswith(f"{self.lane}-"):
            self.watch.wrong("5", f"the receipt {receipt} is used on the queue {self.lane}")
        act()

    def depth(self) -> Depth:
        return self.line.call(Kind.READ, "depth", self.inner.depth)


@dataclass(frozen=True)
class SimDeadLetters(SimQueue):
    """A lane's dead-letter queue, as an operator sees it."""

    def delete(self, receipt: str) -> None:
        self.line.call(
            Kind.OTHER, "delete letter", lambda: self._drop(receipt), place=QUEUES, detail=receipt
        )

    def _drop(self, receipt: str) -> None:
        letter = self.inner._stored.get(self.inner._receipts.get(receipt, ""))
        self.inner.delete(receipt)
        if letter is not None and letter.message_id not in self.inner._stored:
            self.watch.deleted(letter.body, self.watch.received[receipt])


@dataclass(frozen=True)
class SimPayloads(PayloadsPort):
    line: Line
    inner: MemoryPayloadStore

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        return self.line.call(
            Kind.OTHER,
            "put payload",
            lambda: self.inner.put(name, blocks),
            place=PAYLOADS,
            detail=name,
        )

    def read(self, name: str, offset: int, length: int) -> bytes:
        return self.line.call(
            Kind.READ,
            "read payload",
            lambda: self.inner.read(name, offset, length),
            place=PAYLOADS,
            detail=(name, offset),
        )

    def delete(self, name: str) -> None:
        self.line.call(
            Kind.OTHER,
            "delete payload",
            lambda: self.inner.delete(name),
            place=PAYLOADS,
            detail=name,
        )


class SimTelemetry:
    """Only what is a finding: a rule that crashed."""

    def __init__(self, hub: Hub, seen: dict[str, int], unsettled: set[str] | None = None) -> None:
        """unsettled: gets the messages whose decision an entrypoint could not carry out."""
        self._hub = hub
        self._seen = seen
        self._unsettled = set() if unsettled is None else unsettled

    def log(self, action: str, **fields: object) -> None:
        self._seen[action] = self._seen.get(action, 0) + 1
        if action == "message_not_settled":
            self._unsettled.add(str(fields["message_id"]))
        if action == "message_crashed":
            self._hub.crashes.append(f"{fields['message_id']}: {fields['error']!r}")
        if action == "handed_over":
            self._seen[f"handed over: {fields['why']}"] = 1
        if action == "attempt_crashed":
            self._hub.crashes.append(f"{fields['job_id']}: {fields['error']}")

    def count(
        self, metric: str, value: int = 1, *, lane: Lane | None = None, operation: str | None = None
    ) -> None: ...

    def duration(
        self, metric: str, ms: int, *, lane: Lane | None = None, operation: str | None = None
    ) -> None: ...
