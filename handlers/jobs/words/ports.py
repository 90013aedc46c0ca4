"""The ports: what the rules need from outside. Each port has an AWS and an in-memory
implementation, and both pass the same contract suite (``tests/contract``).

All times are UTC epoch milliseconds; all durations are milliseconds unless the name says seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from .table import TableCache

if TYPE_CHECKING:
    from .effect import Batch, Delivered
    from .event import JobEvent
    from .filters import Filter
    from .job import Lane
    from .limits import Limits
    from .messages import Message
    from .operation import Operations, Record
    from .timing import Timing
    from .writes import Cursor, Index, Item, Key, Page, Value, Write


class Store(Protocol):
    """The control table, and transactions over it and the record table."""

    def get(self, key: Key) -> Item | None:
        """The item's attributes without its key, strongly consistent. Raises Transient."""

    def query(
        self,
        index: Index,
        partition: str,
        *,
        up_to: int | None = None,
        descending: bool = False,
        limit: int = 100,
        after: Cursor | None = None,
    ) -> Page:
        """Items of one index partition in order of its sort key. Eventually consistent: check
        again in the condition of whatever is written because of it. ``up_to``: only sort keys <=
        this number. Items carry all their attributes. Raises Transient."""

    def count(self, index: Index, partition: str, *, before: str | int, at_most: int) -> int:
        """How many items of an index partition come before this sort key, up to ``at_most``.
        Eventually consistent. Raises Transient."""

    def query_partition(
        self, pk: str, *, sk_prefix: str, limit: int = 100, after: Cursor | None = None
    ) -> Page:
        """Items of one table partition whose sk starts with the prefix, in order of sk, strongly
        consistent. Raises Transient."""

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        """Execute all writes or none: at most ``writes.MAX_ACTIONS``, no two on one item.

        Raises Refused (nothing written, one reason per write; the reason of a failed condition
        carries the item), Transient (nothing written) or OutcomeUnknown (reply lost)."""


class RecordStore(Protocol):
    """The team's own records. Every call is keyed by the tenant it is given."""

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        """Records by id, strongly consistent; absent ids are left out. At most 100 distinct ids.
        Raises Transient."""

    def change(self, record: Record, fields: Mapping[str, Value], job_id: str) -> Write:
        """The write that sets ``fields`` (a value of None removes the field), raises the version
        by one and marks the record with the job id, on condition that the record still has the
        version read and does not carry this job's id already."""

    def remove(self, record: Record, job_id: str) -> Write:
        """The write that deletes the record, on the same conditions."""


@dataclass(frozen=True)
class Delivery:
    """One received message."""

    body: str
    receipt: str
    message_id: str
    receive_count: int
    sent_at: int
    first_received_at: int
    group: str = ""
    """The message's group; empty when the queue did not tell it."""


@dataclass(frozen=True)
class Depth:
    """About how many messages a queue holds."""

    waiting: int
    in_flight: int


class LaneQueue(Protocol):
    """One lane's queue."""

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        """Send up to 10 messages; returns the positions that were NOT accepted.
        Raises Transient when none was, OutcomeUnknown when it can't be known."""

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        """Up to ``limit`` (1..10) messages; long polling. Raises Transient."""

    def set_visibility(self, receipt: str, seconds: int) -> None:
        """The message stays hidden for ``seconds`` from now (0..43200).
        Raises ReceiptExpired when it is not in flight (any more), Transient."""

    def delete(self, receipt: str) -> None:
        """Delete the message. Success proves nothing when the receipt is an old one.
        Raises Transient."""

    def depth(self) -> Depth:
        """Approximate, over all tenants. Raises Transient."""


class PayloadStore(Protocol):
    """Id lists that are too large for the job item, and reports. Written once, read in blocks."""

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        """Write (or replace) the object, whole or not at all, holding no more than a few blocks
        in memory; returns its size in bytes. Raises Transient, and what ``blocks`` raises."""

    def read(self, name: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; b"" at or past the end.
        Raises PayloadGone, Transient."""

    def delete(self, name: str) -> None:
        """Delete the object; fine when it does not exist. Raises Transient."""

    def link(self, name: str, *, file_name: str, seconds: int) -> str:
        """An address from which the object can be downloaded without credentials, under that file
        name (ASCII), for so many seconds. Makes no call."""


@dataclass(frozen=True)
class Stored:
    """An uploaded file as it is now."""

    version: str
    """The version of the content; other content has another version."""
    size: int
    """Bytes."""
    notes: Mapping[str, str]
    """The notes that were fixed when its address was given out; ASCII."""


@dataclass(frozen=True)
class UploadAddress:
    """An address that takes one file, by a form that has these fields before the file."""

    url: str
    fields: Mapping[str, str]


class UploadStore(Protocol):
    """Files that clients put there themselves."""

    def address(self, name: str, notes: Mapping[str, str], *, seconds: int) -> UploadAddress:
        """An address that takes one object of this name, with exactly these notes (ASCII) and a
        size from 1 byte to the store's limit, for so many seconds."""

    def look(self, name: str) -> Stored | None:
        """The file; None when there is none. Raises Transient."""

    def read(self, name: str, version: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes of that version from ``offset``; b"" at or past the end.
        Raises UploadGone when that version is no longer there, Transient."""


@dataclass(frozen=True)
class Match:
    """A record that a query found."""

    id: str
    cursor: str
    """The cursor that goes on after this record, as exact text."""


@dataclass(frozen=True)
class Matches:
    """A page of a query."""

    found: Sequence[Match]
    next: str | None
    """The cursor to go on with, None at the end. A page may hold fewer records than asked for, or
    none, while there is more."""


@dataclass(frozen=True)
class Count:
    number: int
    exact: bool
    """False: there may be more."""


class RecordQuery(Protocol):
    """Finds a tenant's records by a filter, in the order of fields that never change."""

    @property
    def sorts(self) -> frozenset[str]:
        """The fields of the order; a write to one of them moves a record in the walk."""

    @property
    def searchable(self) -> frozenset[str] | None:
        """The fields that a filter may name; None: any field."""

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        """At most ``limit`` records after the cursor; None is the start. The answer may be a little
        old: check each record again when it is read. Raises Transient, QueryRefused."""

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        """How many match, up to ``at_most`` or within a time. Raises Transient, QueryRefused."""


class Sink(Protocol):
    """A place outside that has to follow the records. See ``handlers/effects``."""

    def deliver(self, batch: Batch) -> Delivered:
        """Make the outside agree with the records of the batch. Idempotent: a batch can come
        again, late and out of order. Raises Transient (nothing or not all was taken; with
        ``retry_after_ms`` if the other side asked for it)."""


class Listener(Protocol):
    def deliver_event(self, event: JobEvent) -> None:
        """Hand over a job's event; the same event can come again. Raises Transient (NotAsked: this
        counts as no try), NotTaken (refused for good)."""


class Event(Protocol):
    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout_ms: int) -> bool:
        """True when it was set within the time."""


class Task(Protocol):
    def join(self) -> None:
        """Return when the task has ended."""


class Runtime(Protocol):
    """Time, chance and concurrency. The only clock there is."""

    def now(self) -> int:
        """UTC epoch milliseconds."""

    def sleep(self, ms: int) -> None: ...

    def random(self) -> float:
        """0 <= x < 1."""

    def token(self) -> str:
        """20 random lowercase hex digits."""

    def event(self) -> Event: ...

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        """Run beside the caller (a daemon thread)."""


class Telemetry(Protocol):
    """What operators see. Must never raise."""

    def log(self, action: str, **fields: object) -> None:
        """One structured line; tenant and job id belong here."""

    def count(
        self, metric: str, value: int = 1, *, lane: Lane | None = None, operation: str | None = None
    ) -> None: ...

    def duration(
        self, metric: str, ms: int, *, lane: Lane | None = None, operation: str | None = None
    ) -> None: ...


@dataclass(frozen=True)
class World:
    """Everything a rule needs, in one value: the ports and the policy."""

    store: Store
    records: RecordStore
    queues: Mapping[Lane, LaneQueue]
    payloads: PayloadStore
    runtime: Runtime
    telemetry: Telemetry
    operations: Operations
    timing: Timing
    limits: Limits
    due_shards: int = 4
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    """The deployment's sinks, by the names that operations use; none is normal."""
    listeners: Mapping[str, Listener] = field(default_factory=dict)
    """The listeners that this process can reach, by their names in ``words.event``; none is
    normal."""
    address_problem: Callable[[str], str | None] | None = None
    """(address) -> why it must not receive events, None when it may. None instead of a function:
    this deployment sends no events to addresses."""
    query: RecordQuery | None = None
    """None: this deployment takes no queries."""
    uploads: UploadStore | None = None
    """None: this deployment takes no uploads."""
    tables: TableCache = field(default_factory=TableCache)
    """The lookup tables that this process has read."""
