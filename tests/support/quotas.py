"""A tenant with few slots: worlds, jobs and what the tenant uses of its limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from handlers.jobs.lifecycle.submit import Created, SubmitResult, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.transitions.quotas import usage
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, now

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMITS = Limits(tenant_slots_small=2, tenant_slots_bulk=1, small_max_items=10)


def world_of(limits: Limits = LIMITS) -> MemoryWorld:
    world = memory_world(limits=limits)
    for tenant in (TENANT, "other"):
        world.records.load(tenant, {f"r{n:03}": {"price": 10, "version": 1} for n in range(30)})
    return world


def ask(
    world: MemoryWorld,
    subject: str,
    *,
    tenant: str = TENANT,
    lane: Lane = Lane.SMALL,
    field_: str = "price",
    tolerated: int = 100,
) -> SubmitResult:
    body = {
        "operation": "adjust_number",
        "subject": subject,
        "params": {"field": field_, "add": 1},
        "ids": [f"r{n:03}" for n in range(1 if lane is Lane.SMALL else 20)],
        "tolerated_failure_percent": tolerated,
    }
    world.runtime.sleep(1)  # so that ids sort as they were made
    request = accept(parse(json.dumps(body)), world.operations, max_ids=1000)
    return submit(world, tenant, request)


def made(world: MemoryWorld, subject: str, lane: Lane = Lane.SMALL, **more: object) -> Job:
    outcome = ask(world, subject, lane=lane, **more)  # type: ignore[arg-type]  # options of ask
    assert isinstance(outcome, Created)
    return outcome.job


def held(world: MemoryWorld, jobs: Sequence[Job]) -> list[bool]:
    return [now(world, job).held for job in jobs]


def counts(world: MemoryWorld, tenant: str = TENANT) -> tuple[int, int, int]:
    """(in flight, held, active), over both lanes."""
    seen = usage(world, tenant)
    lanes = seen.lanes.values()
    return sum(u.count for u in lanes), sum(u.held for u in lanes), seen.active.count


FEW = LIMITS.model_copy(update={"max_active_jobs_per_tenant": 3})
