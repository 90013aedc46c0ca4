"""The ports of a simulated process, apart from what becomes of a call: the simulation's ``wires``
and the explorer's ports say that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import Delivery
    from handlers.jobs.words.writes import Cursor, Index, Item, Key, Page, Value, Write
    from handlers.testing.payload_store import MemoryPayloadStore
    from handlers.testing.record_store import MemoryRecordStore

    from .threads import Threads
    from .watch import Watch
    from .watched_store import WatchedStore

T = TypeVar("T")


class StorePort(ABC):
    inner: WatchedStore
    watch: Watch

    @property
    @abstractmethod
    def threads(self) -> Threads: ...

    @abstractmethod
    def read(self, what: str, where: str, act: Callable[[], T]) -> T:
        """Make the read. where: the key or partition."""

    @abstractmethod
    def write(self, action: str, writes: Sequence[Write]) -> None: ...

    def look_up(self, key: Key) -> Item | None:
        return self.inner.get(key)

    def get(self, key: Key) -> Item | None:
        return self.read("get", f"{key.pk} {key.sk}", lambda: self.look_up(key))

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
        return self.read(
            "query",
            partition,
            lambda: self.inner.query(
                index, partition, up_to=up_to, descending=descending, limit=limit, after=after
            ),
        )

    def count(self, index: Index, partition: str, *, before: str | int, at_most: int) -> int:
        return self.read(
            "count",
            partition,
            lambda: self.inner.count(index, partition, before=before, at_most=at_most),
        )

    def query_partition(
        self, pk: str, *, sk_prefix: str, limit: int = 100, after: Cursor | None = None
    ) -> Page:
        return self.read(
            "query_partition",
            pk,
            lambda: self.inner.query_partition(pk, sk_prefix=sk_prefix, limit=limit, after=after),
        )

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        thread = self.threads.current
        self.watch.sending(thread, action, writes)
        try:
            self.write(action, writes)
        finally:
            self.watch.answered(thread)


class RecordsPort:
    """The writes that it makes are part of a transaction, and no calls."""

    inner: MemoryRecordStore

    def change(self, record: Record, fields: Mapping[str, Value], job_id: str) -> Write:
        return self.inner.change(record, fields, job_id)

    def remove(self, record: Record, job_id: str) -> Write:
        return self.inner.remove(record, job_id)


class QueuePort:
    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        raise NotImplementedError("who receives what is decided from outside")


class PayloadsPort:
    inner: MemoryPayloadStore

    def link(self, name: str, *, file_name: str, seconds: int) -> str:
        return self.inner.link(name, file_name=file_name, seconds=seconds)
