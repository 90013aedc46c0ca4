"""Slots' time of tenants in a full lane: real attempts of one slot, in any order of the queue."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution import turns
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.turns import FreeSlot
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.transitions.shares import set_weight
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.timing import SECOND
from handlers.testing.world import SHORT, memory_world
from tests.support.jobs import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.operation import Record
    from handlers.testing.world import MemoryWorld

SLICE: Final = 5
CHUNK: Final = 2
"""Records; reading those of one chunk takes a second."""
RECORDS: Final = 600
ROUNDS: Final = 40
"""Slices."""
POLL: Final = 20
MANY: Final = "many"


class FullLane:
    """Jobs of some tenants and one slot that serves them."""

    def __init__(self, tenants: Mapping[str, tuple[int, int]], seed: int) -> None:
        """tenants: by name, the weight and how many jobs."""
        self.world = _world()
        self._random = Random(seed)  # noqa: S311  repeatable
        self._jobs: list[Job] = []
        for tenant, (weight, jobs) in tenants.items():
            set_weight(self.world, tenant, weight)
            ids = [f"r{n:03}" for n in range(RECORDS)]
            self.world.records.load(tenant, {id_: {"price": 10, "version": 1} for id_ in ids})
            self._jobs += [_job(self.world, tenant, f"s{n}", ids) for n in range(jobs)]

    def worked(self) -> Counter[str]:
        """ms that each tenant's jobs worked."""
        slot, until = FreeSlot(), self.world.runtime.now() + ROUNDS * SLICE * SECOND
        while self.world.runtime.now() < until:
            self._serve(slot)
        took: Counter[str] = Counter()
        for job in self._jobs:
            seen = now(self.world, job)
            assert not seen.state.terminal, "from here on not every slot is wanted"
            took[job.tenant] += seen.worked_ms
        return took

    def _serve(self, slot: FreeSlot) -> None:
        queue = self.world.queues[Lane.BULK]
        stored = list(queue._stored.items())
        self._random.shuffle(stored)
        queue._stored = dict(stored)
        for delivery in queue.receive(1, POLL):
            worker = Worker(f"w/{delivery.receipt}", slot=slot)
            apply_decision(queue, delivery, on_message(self.world, delivery, worker))


def _world() -> MemoryWorld:
    world = memory_world(
        limits=Limits(small_max_items=1, chunk_size=CHUNK, tenant_slots_bulk=50),
        timing=SHORT.model_copy(update={"slice": SLICE}),
    )
    read = world.records.read

    def slowly(tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        world.runtime.sleep(SECOND)
        return read(tenant, ids)

    world.records.read = slowly  # type: ignore[method-assign]
    return world


def _job(world: MemoryWorld, tenant: str, subject: str, ids: Sequence[str]) -> Job:
    body = {
        "operation": "adjust_number",
        "subject": subject,
        "params": {"field": "price", "add": 1},
        "ids": ids,
    }
    request = accept(parse(json.dumps(body)), world.operations, max_ids=RECORDS)
    outcome = submit(world, tenant, request)
    assert isinstance(outcome, Created)
    return outcome.job


@pytest.mark.parametrize(
    "tenants",
    [
        {MANY: (1, 10), "one": (1, 1)},
        {MANY: (1, 10), "one": (1, 1), "other": (1, 1)},
        {MANY: (3, 10), "one": (1, 1)},
        {MANY: (1, 10), "one": (3, 1)},
    ],
)
def test_a_tenant_gets_its_share_however_many_jobs_another_one_has(
    tenants: Mapping[str, tuple[int, int]],
) -> None:
    worked = FullLane(tenants, seed=1).worked()
    by_weight = {tenant: worked[tenant] / weight for tenant, (weight, _) in tenants.items()}
    assert max(by_weight.values()) <= 1.25 * min(by_weight.values())


def test_where_no_slot_stands_free_who_has_most_messages_has_most_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control of the test above."""
    monkeypatch.setattr(turns, "STANDS_FREE", 0)
    worked = FullLane({MANY: (1, 10), "one": (1, 1), "other": (1, 1)}, seed=1).worked()
    assert worked[MANY] > 2 * max(worked["one"], worked["other"])
