"""The world outside the database, as a sink that fails in every way a server can, and what it has
come to hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from handlers.jobs.words.effect import Delivered
from handlers.jobs.words.errors import Transient

from .faults import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.words.effect import Batch, Projection
    from handlers.jobs.words.event import JobEvent
    from handlers.jobs.words.writes import Item, Value

    from .watch import Watch
    from .wires import Line

NAME: Final = "index"
REMEMBERS: Final = 60_000
"""ms for which the version of a removed document is remembered (``index.gc_deletes``)."""


@dataclass(frozen=True)
class Document:
    version: int
    value: Value
    number: int
    """Of the write that made it so: each has another one."""


@dataclass
class Outside:
    """Documents by (tenant, record id), with external versions as a search index keeps them."""

    late: bool = True
    """A request whose sender gave up may arrive later. Where records are removed and made again,
    none does: no index can tell a late removal from one of the new record."""
    documents: dict[tuple[str, str], Document] = field(default_factory=dict)
    removed: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """The version of a removal, and until when (ms) it is remembered."""
    writes: int = 0

    def set(self, tenant: str, id_: str, version: int, value: Value) -> None:
        """Another program writes the document of its own record."""
        self.writes += 1
        self.documents[tenant, id_] = Document(version, value, self.writes)
        self.removed.pop((tenant, id_), None)

    def take(self, tenant: str, sent: Projection, now: int) -> bool:
        """False when something newer is there."""
        key = tenant, sent.id
        held, (gone, until) = self.documents.get(key), self.removed.get(key, (-1, 0))
        if sent.version < (held.version if held else gone if now < until else -1):
            return False
        self._write(key, sent, now)
        return True

    def replace(self, tenant: str, sent: Projection, number: object, now: int) -> bool:
        """The same, whatever the versions, if the document is still that one; None: there is
        none."""
        held = self.documents.get((tenant, sent.id))
        if (held.number if held else None) != number:
            return False
        self._write((tenant, sent.id), sent, now)
        return True

    def number(self, tenant: str, id_: str) -> int | None:
        held = self.documents.get((tenant, id_))
        return held.number if held else None

    def _write(self, key: tuple[str, str], sent: Projection, now: int) -> None:
        if sent.record is None:
            self.documents.pop(key, None)
            self.removed[key] = sent.version, now + REMEMBERS
        else:
            self.set(*key, sent.version, sent.record.fields.get("n"))


def about(item: Item) -> tuple[int, Value]:
    """What the document of a record with these attributes has to be."""
    version = item.get("version", 0)
    assert isinstance(version, int)
    return version, item.get("n")


@dataclass(frozen=True)
class SimListener:
    """Hears of jobs, or does not."""

    line: Line
    heard: list[JobEvent]

    def deliver_event(self, event: JobEvent) -> None:
        self.line.call(Kind.OTHER, "tell", lambda: self.heard.append(event), detail=event.key)


@dataclass(frozen=True)
class SimSink:
    line: Line
    outside: Outside
    watch: Watch

    def deliver(self, batch: Batch) -> Delivered:
        never = {id_ for id_ in batch.instead_of if (batch.tenant, id_) not in self.watch.ever_gone}
        if never:
            self.watch.wrong("4", f"{batch.key} writes over {sorted(never)}, which were never gone")
        return self.line.call(
            Kind.OTHER, "deliver", partial(self._take, batch), detail=(batch.key, batch.records)
        )

    def _take(self, batch: Batch) -> Delivered:
        random, faults = self.line.hub.random, self.line.faults
        now, again = list(batch.records), frozenset[str]()
        if not faults.off and random.random() < faults.refused:
            again = frozenset(each.id for each in now if random.random() < 0.5)
            now = [each for each in now if each.id not in again]
        if not faults.off and random.random() < faults.refused:
            # On its way for a while after whoever sent it gave up.
            delay = random.choice((20, 2000, 20_000))
            self.line.hub.note("arrives late", delay)
            if self.outside.late:
                self.line.hub.after(delay, lambda: self._arrive(batch, now))
            raise Transient
        return Delivered(again=again, newer=self._put(batch, now))

    def _arrive(self, batch: Batch, records: Sequence[Projection]) -> None:
        self._put(batch, records)

    def _put(self, batch: Batch, records: Sequence[Projection]) -> Mapping[str, object]:
        """By id, the write that made the document of which something newer is there."""
        tenant, at = batch.tenant, self.line.hub.now
        newer: dict[str, object] = {}
        for each in records:
            if each.id in batch.instead_of:
                taken = self.outside.replace(tenant, each, batch.instead_of[each.id], at)
            else:
                taken = self.outside.take(tenant, each, at)
            if not taken:
                newer[each.id] = self.outside.number(tenant, each.id)
        return newer
