"""Ports that are made when they are first needed: most processes that have them never need them,
and their imports are slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..jobs.words.effect import Batch, Delivered
    from ..jobs.words.event import JobEvent
    from ..jobs.words.filters import Filter
    from ..jobs.words.ports import Count, Listener, Matches, RecordQuery, Sink


@dataclass
class LazySink:
    """``Sink`` that is made when it is first needed. Two threads may make one each; one stays."""

    make: Callable[[], Sink]

    def deliver(self, batch: Batch) -> Delivered:
        return self._sink.deliver(batch)

    @cached_property
    def _sink(self) -> Sink:
        return self.make()


@dataclass
class LazyListener:
    """``Listener`` that is made when it is first needed."""

    make: Callable[[], Listener]

    def deliver_event(self, event: JobEvent) -> None:
        self._listener.deliver_event(event)

    @cached_property
    def _listener(self) -> Listener:
        return self.make()


@dataclass
class LazyQuery:
    """``RecordQuery`` whose client is made when it is first needed."""

    make: Callable[[], RecordQuery]

    @property
    def sorts(self) -> frozenset[str]:
        return self._query.sorts

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        return self._query.page(tenant, filter_, cursor, limit)

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        return self._query.count(tenant, filter_, at_most)

    @cached_property
    def _query(self) -> RecordQuery:
        return self.make()
