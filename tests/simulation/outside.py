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
    from collections.abc import Sequence

    from handlers.jobs.words.effect import Batch, Projection
    from handlers.jobs.words.event import JobEvent
    from handlers.jobs.words.writes import Item, Value

    from .watch import Watch
    from .wires import Line

NAME: Final = "index"


@dataclass
class Outside:
    """Documents by (tenant, record id): the version, and what it is about."""

    documents: dict[tuple[str, str], tuple[int, Value]] = field(default_factory=dict)

    def put(self, tenant: str, id_: str, version: int, value: Value) -> bool:
        """False when it holds a newer one."""
        held = self.documents.get((tenant, id_), (-1, None))
        if version < held[0]:
            return False
        self.documents[tenant, id_] = (version, value)
        return True


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
        if batch.instead_of:
            # No record was ever deleted here, so nothing outside is of one's past.
            self.watch.wrong("4", f"{batch.key} writes over {sorted(batch.instead_of)}")
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
            self.line.hub.after(delay, lambda: self._arrive(batch.tenant, now))
            raise Transient
        return Delivered(again=again, newer=dict.fromkeys(self._put(batch.tenant, now)))

    def _arrive(self, tenant: str, records: Sequence[Projection]) -> None:
        self._put(tenant, records)

    def _put(self, tenant: str, records: Sequence[Projection]) -> list[str]:
        """The ids of which something newer is there."""
        return [
            each.id
            for each in records
            if not self.outside.put(
                tenant, each.id, each.version, each.record.fields.get("n") if each.record else None
            )
        ]
