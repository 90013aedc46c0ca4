"""The ports as one process sees them: it stops before every call that others can notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from handlers.jobs.words.errors import ReceiptExpired
from tests.simulation.ports import PayloadsPort, QueuePort, RecordsPort, StorePort
from tests.simulation.watch import Watch
from tests.simulation.watched_store import WatchedStore

from .schedule import Fault, Process, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from handlers.jobs.words.job import Lane
    from handlers.jobs.words.messages import Message
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import Depth
    from handlers.jobs.words.writes import Key, Write
    from handlers.testing.lane_queue import MemoryLaneQueue
    from handlers.testing.payload_store import MemoryPayloadStore
    from handlers.testing.record_store import MemoryRecordStore

T = TypeVar("T")
WRITING: Final = (Fault.CRASH, Fault.LOST, Fault.LOST_AFTER)
LATE: Final = frozenset({"beat", "commit_chunk"})
"""Writes whose effect may come after the reply was given up; docs/simulation.md says why only
these."""
NEVER_DUE: Final = ("effect#", "event#", "admit#", "cleanup#", "parked#")
"""Partitions in which a recovery run of a play finds nothing: reading them is no step."""
OF_THE_LANE: Final = frozenset({"begin", "store_receipt", "commit_chunk"})
"""Writes that only a worker of the job's lane makes."""


class HashedStore(WatchedStore):
    """A WatchedStore with a hash of its items. Written items are hashed when the hash is asked for:
    neither the beginning of a run, which other runs had already, nor a settling world asks."""

    def __init__(self) -> None:
        super().__init__()
        self._hashes: dict[Key, int] = {}
        self._written: set[Key] = set()

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        super().transact(action, writes)
        self._written.update(write.key for write in writes)

    @property
    def hash(self) -> int:
        for key in self._written:
            if key in self._items:
                self._hashes[key] = hash(repr(sorted(self._items[key].items(), key=_name)))
            else:
                self._hashes.pop(key, None)
        self._written.clear()
        return hash(frozenset(self._hashes.items()))


def _name(entry: tuple[str, object]) -> str:
    return entry[0]


@dataclass(frozen=True)
class StepStore(StorePort):
    schedule: Schedule
    process: Process
    inner: HashedStore
    watch: Watch

    @property
    def threads(self) -> Schedule:
        return self.schedule

    def read(self, what: str, where: str, act: Callable[[], T]) -> T:
        if where.startswith(NEVER_DUE):
            return act()
        return self.schedule.make(f"{what} {where}", act)

    def write(self, action: str, writes: Sequence[Write]) -> None:
        faults = (*WRITING, Fault.LATE) if action in LATE else WRITING
        self.schedule.make(action, lambda: self._write(action, writes), faults=faults)

    def _write(self, action: str, writes: Sequence[Write]) -> None:
        self.inner.transact(action, writes)
        if action in OF_THE_LANE and self.process.lane is not None:
            jobs = [self.watch.jobs[w.key.pk[4:]] for w in writes if w.key.sk == "JOB"]
            if any(job["lane"] != self.process.lane.value for job in jobs):
                self.watch.wrong("lane", f"{action} of a worker of the {self.process.lane} lane")


@dataclass(frozen=True)
class StepRecords(RecordsPort):
    """Reads of records are made at once: a later one would only find newer versions."""

    schedule: Schedule
    inner: MemoryRecordStore

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        found = self.inner.read(tenant, ids)
        self.schedule.answered("read records", found)
        return found


@dataclass(frozen=True)
class StepQueue(QueuePort):
    schedule: Schedule
    inner: MemoryLaneQueue
    lane: Lane
    watch: Watch

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        return self.schedule.make(
            f"send {self.lane}", lambda: self.inner.send(messages), faults=WRITING
        )

    def set_visibility(self, receipt: str, seconds: int) -> None:
        """Made at once: the play delivers whenever it likes."""
        self._of_this_queue(receipt)
        try:
            self.inner.set_visibility(receipt, seconds)
        except ReceiptExpired as error:
            self.schedule.answered("set visibility", repr(error))
            raise

    def delete(self, receipt: str) -> None:
        self.schedule.make(
            "delete message",
            lambda: self._delete(receipt),
            faults=(Fault.CRASH,),
        )

    def depth(self) -> Depth:
        return self.inner.depth()

    def _delete(self, receipt: str) -> None:
        self._of_this_queue(receipt)
        self.watch.delete(self.lane, receipt)

    def _of_this_queue(self, receipt: str) -> None:
        if receipt not in self.inner._receipts:
            self.watch.wrong("lane", f"a receipt of another queue is used on {self.lane}")


@dataclass(frozen=True)
class StepPayloads(PayloadsPort):
    schedule: Schedule
    inner: MemoryPayloadStore

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        return self.inner.put(name, blocks)

    def read(self, name: str, offset: int, length: int) -> bytes:
        return self.inner.read(name, offset, length)

    def delete(self, name: str) -> None:
        self.schedule.make("delete payload", lambda: self.inner.delete(name), faults=(Fault.CRASH,))
