"""The store of a simulated world: it shows what is committed, and its indexes may lag."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.words.errors import Reason
from handlers.jobs.words.writes import Key, Table
from handlers.testing.job_store import MemoryStore
from handlers.testing.writes import item_after

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from handlers.jobs.words.writes import Item, Page, Write

    from .watch import Watch

MAX_LAG: Final = 5000
"""The most (ms) that an index is behind its table."""


class WatchedStore(MemoryStore):
    """A MemoryStore that shows each committed transaction to the watch."""

    def __init__(self, lag: Callable[[], int] = lambda: 0) -> None:
        """lag: how far (ms) an index is behind, asked at each read of one."""
        super().__init__()
        self.watch: Watch | None = None
        self._lag = lag
        self._past: deque[tuple[int, Key, Item | None]] = deque()
        """What control items were before their writes, the oldest first: (ms, key, item)."""
        self._as_of: int | None = None
        """When the view is from that is being read; None: from now."""

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        before = {write.key: self._items.get(write.key) for write in writes}
        super().transact(action, writes)
        if self.watch is not None:
            self._remember(before)
            self.watch.committed(action, writes, before, self._items)

    def _remember(self, before: Mapping[Key, Item | None]) -> None:
        assert self.watch is not None
        now = self.watch.hub.now
        self._past.extend((now, key, item) for key, item in before.items())
        while self._past and self._past[0][0] < now - MAX_LAG:
            self._past.popleft()

    def query(self, *args: Any, **named: Any) -> Page:
        with self.lagging():
            return super().query(*args, **named)

    def count(self, *args: Any, **named: Any) -> int:
        with self.lagging():
            return super().count(*args, **named)

    @contextmanager
    def lagging(self) -> Iterator[None]:
        """What is read within is as an index shows it."""
        if self.watch is not None and (lag := self._lag()):
            self._as_of = self.watch.hub.now - lag
        try:
            yield
        finally:
            self._as_of = None

    def snapshot(self, table: Table = Table.CONTROL) -> Mapping[Key, Item]:
        return {key: item for key, item in self._then().items() if key.table is table and item}

    def _control(self) -> Iterable[tuple[Key, Item]]:
        if self._as_of is None:
            return super()._control()
        return [
            (key, item)
            for key, item in self._then().items()
            if key.table is Table.CONTROL and item is not None
        ]

    def _then(self) -> Mapping[Key, Item | None]:
        """Every item as of the view that is being read; None: it was not there."""
        then: dict[Key, Item | None] = {}
        for at, key, item in reversed(self._past):
            if self._as_of is None or at <= self._as_of:
                break
            then[key] = item
        return {**self._items, **then}

    def objections(self, writes: Sequence[Write]) -> list[Reason | None]:
        results = [item_after(w, self._items.get(w.key), self._key_names) for w in writes]
        return [result if isinstance(result, Reason) else None for result in results]

    def peek(self, key: Key) -> Item:
        return self._items.get(key, {})

    def all_items(self) -> Mapping[Key, Item]:
        return self._items


class Present:
    """The store's reads as they are now, whatever its indexes lag."""

    def __init__(self, store: WatchedStore) -> None:
        self._store = store
        self.get = store.get
        self.query = partial(MemoryStore.query, store)
        self.count = partial(MemoryStore.count, store)
        self.query_partition = store.query_partition
        self.transact = store.transact
