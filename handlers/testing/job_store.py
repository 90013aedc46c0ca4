"""The store in memory: both tables, conditional transactions and the sparse indexes."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from ..jobs.storage.validation import check_count, check_transaction
from ..jobs.words.errors import Reason, Refused
from ..jobs.words.record_schema import RecordSchema
from ..jobs.words.stored_values import copied
from ..jobs.words.writes import Found, Index, Key, Page, Table
from .writes import item_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from ..jobs.words.writes import Cursor, Item, Value, Write

    _Entry: TypeAlias = tuple[Key, Item]


class MemoryStore:
    """``Store`` in memory. Every call is one atomic step under one lock.

    Programming errors (too many writes, two writes on one item, a float) are ValueError or
    TypeError; what DynamoDB would refuse because of the data is Refused with ``Why.INVALID``.
    """

    def __init__(self, schema: RecordSchema | None = None) -> None:
        schema = schema or RecordSchema()
        self._key_names = {Table.CONTROL: ("pk", "sk"), Table.RECORDS: (schema.tenant, schema.id)}
        self._items: dict[Key, dict[str, Value]] = {}
        self._lock = Lock()

    def get(self, key: Key) -> Item | None:
        with self._lock:
            item = self._items.get(key)
            return None if item is None else copied(item)

    def get_many(self, keys: Iterable[Key]) -> Mapping[Key, Item]:
        """The items that exist."""
        with self._lock:
            return {key: copied(self._items[key]) for key in keys if key in self._items}

    def snapshot(self, table: Table = Table.CONTROL) -> Mapping[Key, Item]:
        """Everything in one table, for assertions."""
        with self._lock:
            return {k: copied(item) for k, item in self._items.items() if k.table is table}

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
        if up_to is not None and index is not Index.DUE:
            raise ValueError(f"index {index} is not sorted by a number")
        with self._lock:
            found = self._indexed(index, partition)
            if up_to is not None:
                found = [entry for entry in found if _value(entry, index.sk) <= up_to]
            names = (index.sk, "pk", "sk")
            page = _page(found, names, descending=descending, limit=limit, after=after)
        return page if page.next is None else Page(page.found, {**page.next, index.pk: partition})

    def count(self, index: Index, partition: str, *, before: str | int, at_most: int) -> int:
        check_count(index, before, at_most)
        with self._lock:
            found = self._indexed(index, partition)
        return min(len([e for e in found if _value(e, index.sk) < before]), at_most)

    def query_partition(
        self, pk: str, *, sk_prefix: str, limit: int = 100, after: Cursor | None = None
    ) -> Page:
        with self._lock:
            found = [
                (key, item)
                for key, item in self._control()
                if key.pk == pk and key.sk.startswith(sk_prefix)
            ]
            return _page(found, ("pk", "sk"), descending=False, limit=limit, after=after)

    def transact(self, action: str, writes: Sequence[Write]) -> None:  # noqa: ARG002 - the port's
        check_transaction(writes)
        with self._lock:
            results = [item_after(w, self._items.get(w.key), self._key_names) for w in writes]
            reasons = [result if isinstance(result, Reason) else None for result in results]
            if any(reasons):
                raise Refused(reasons)
            for write, result in zip(writes, results, strict=True):
                if isinstance(result, dict):
                    self._items[write.key] = result
                else:
                    self._items.pop(write.key, None)

    def _indexed(self, index: Index, partition: str) -> list[_Entry]:
        """One partition of an index, in no order."""
        pk, sk = index.pk, index.sk
        return [
            (key, item) for key, item in self._control() if item.get(pk) == partition and sk in item
        ]

    def _control(self) -> Iterable[_Entry]:
        return [entry for entry in self._items.items() if entry[0].table is Table.CONTROL]


def _page(
    found: Sequence[_Entry],
    names: tuple[str, ...],
    *,
    descending: bool,
    limit: int,
    after: Cursor | None,
) -> Page:
    """Like DynamoDB, a full page always has a cursor, even when nothing follows."""
    if limit < 1:
        raise ValueError(f"limit {limit} is not at least 1")

    def position(entry: _Entry) -> tuple[Any, ...]:
        return tuple([_value(entry, name) for name in names])

    rest = sorted(found, key=position, reverse=descending)
    if after is not None:
        last = tuple(after[name] for name in names)
        rest = [e for e in rest if (position(e) < last if descending else position(e) > last)]
    page = rest[:limit]
    full = len(page) == limit
    return Page(
        tuple(Found(key, copied(item)) for key, item in page),
        dict(zip(names, position(page[-1]), strict=True)) if full else None,
    )


def _value(entry: _Entry, name: str) -> Any:
    key, item = entry
    return getattr(key, name) if name in {"pk", "sk"} else item.get(name)
