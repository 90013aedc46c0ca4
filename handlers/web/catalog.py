"""What a deployment offers: its operations and its lanes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ..jobs.storage import control_table
from ..jobs.storage.transaction import retry_transient
from ..jobs.transitions.quotas import lane_use
from ..jobs.words.errors import Undecodable
from ..jobs.words.job import Lane
from ..jobs.words.writes import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..jobs.words.job import Job
    from ..jobs.words.ports import World

RECENT: Final = 100
"""The tenant's newest jobs, whose dwell is shown."""


def operations_view(world: World) -> dict[str, Any]:
    return {
        "operations": [
            {
                "name": operation.name,
                "description": operation.description,
                "parameters": operation.parameters.model_json_schema(),
                "sinks": [sink for sink in operation.sinks if sink in world.sinks],
            }
            for _, operation in sorted(world.operations.items())
        ]
    }


def lanes_view(world: World, tenant: str) -> dict[str, Any]:
    """The queues' depth is everybody's; the rest is about the tenant's own jobs. Raises
    Transient."""
    recent = _recent(world, tenant)
    return {"lanes": [_lane(world, tenant, lane, recent) for lane in Lane]}


def _lane(world: World, tenant: str, lane: Lane, recent: Sequence[Job]) -> dict[str, Any]:
    depth = retry_transient(world, world.queues[lane].depth)
    yours = lane_use(world, tenant, lane)
    dwell = sorted(job.dwell_ms for job in recent if job.lane is lane and job.dwell_ms is not None)
    view: dict[str, Any] = {
        "lane": lane.value,
        "queue": {"waiting": depth.waiting, "in_flight": depth.in_flight},
        "yours": {
            "in_flight": yours.count,
            "held": yours.held,
            "limit": yours.limit,
        },
    }
    if dwell:
        view["yours"]["dwell_ms"] = {
            "p50": _rank(dwell, 50),
            "p95": _rank(dwell, 95),
            "jobs": len(dwell),
        }
    return view


def _recent(world: World, tenant: str) -> Sequence[Job]:
    page = retry_transient(
        world,
        lambda: world.store.query(
            Index.BY_TENANT, control_table.tenant_partition(tenant), descending=True, limit=RECENT
        ),
    )
    jobs = []
    for found in page.found:
        try:
            jobs.append(control_table.job_of(found.item))
        except Undecodable:
            continue  # the list of jobs logs it
    return jobs


def _rank(ordered: Sequence[int], percent: int) -> int:
    """The nearest rank: a value that occurred."""
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]
