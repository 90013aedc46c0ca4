"""A sink that keeps what it was told, and jobs that it is told of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.effect import Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Change, Operation, Outcome
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, now

if TYPE_CHECKING:
    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.operation import Fields


class Nothing(BaseModel):
    pass


def bump(fields: Fields, _: Nothing) -> Outcome:
    return Change({"n": int(str(fields["n"])) + 1})


OPERATION = Operation("bump", Nothing, bump, lambda _: frozenset({"n"}), sinks=("index",))


@dataclass
class Index:
    """A sink that keeps what it was told, and fails as long as it is told to."""

    failures: int = 0
    refuses: frozenset[str] = frozenset()
    documents: dict[str, tuple[int, object]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def deliver(self, batch: Batch) -> Delivered:
        if self.failures:
            self.failures -= 1
            raise Transient("down")
        self.keys.append(batch.key)
        refused = {p.id: "refused" for p in batch.records if p.id in self.refuses}
        for projection in batch.records:
            held = self.documents.get(projection.id, (-1, None))
            if projection.id not in refused and projection.version >= held[0]:
                n = projection.record.fields["n"] if projection.record else None
                self.documents[projection.id] = (projection.version, n)
        return Delivered(refused=refused)


def a_world(index: Index, **limits: Any) -> MemoryWorld:
    world = memory_world(operations={"bump": OPERATION}, limits=Limits(chunk_size=5, **limits))
    return replace(world, sinks={"index": index})


def run_job(world: MemoryWorld, count: int) -> Job:
    ids = [f"r{n:03}" for n in range(count)]
    world.records.load(TENANT, {id_: {"n": 1, "version": 1} for id_ in ids})
    body = json.dumps({"operation": "bump", "subject": "s", "ids": ids})
    request = accept(parse(body), world.operations, max_ids=1000)
    created = submit(world, TENANT, request)
    assert isinstance(created, Created)
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    assert isinstance(on_message(world, delivery, Worker("w")), DeleteMessage)
    return now(world, created.job)


def recover(world: MemoryWorld, times: int, every_ms: int = 60_000) -> None:
    for _ in range(times):
        world.runtime.sleep(every_ms)
        Recovery(world).run()
