"""Pausing the jobs of a tenant that an operator has stopped. A limit of 0 alone lets them end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..storage import control_table
from ..storage.transaction import retry_transient
from ..transitions.quotas import usage
from ..words.errors import Transient, Undecodable
from ..words.job import OPERATOR, Job, Lane, Waiting
from ..words.states import SUBJECT_TAKEN
from ..words.writes import Index
from . import control

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from ..words.ports import World
    from ..words.writes import Cursor, Item, Page


@dataclass(frozen=True)
class Stopped:
    """Jobs by their ids."""

    paused: tuple[str, ...]
    """PAUSED, or PAUSING until their next chunk."""
    left: tuple[str, ...]
    """Not paused: they are being cancelled, or could not be read or asked now."""


def pause_jobs(world: World, tenant: str, lanes: AbstractSet[Lane], *, held: bool) -> Stopped:
    """Pause the tenant's active jobs in these lanes, newest first.

    held: also those that wait for a slot. It must be True unless the tenant has no slots: each
    paused job would give its slot to the next. Reads the tenant's jobs back to its oldest active
    one. Raises Transient when they cannot be listed."""
    paused: list[str] = []
    left: list[str] = []
    for item in _active(world, tenant):
        waits = item.get("waiting_reason") == Waiting.TENANT_LIMIT
        if item.get("lane") not in lanes or (waits and not held):
            continue
        job_id = str(item["id"])
        try:
            answer = control.pause(world, tenant, job_id, OPERATOR)
        except (Transient, Undecodable):
            left.append(job_id)
            continue
        match answer:
            case Job() | control.Unchanged():
                paused.append(job_id)
            case control.NotPossible(job) if job.state in SUBJECT_TAKEN:
                left.append(job_id)
    return Stopped(tuple(paused), tuple(left))


def _active(world: World, tenant: str) -> Iterator[Item]:
    expected = usage(world, tenant).active.count
    after = None
    while expected > 0:
        page = _page(world, tenant, after)
        for found in page.found:
            if found.item.get("state") in SUBJECT_TAKEN:
                expected -= 1
                yield found.item
        after = page.next
        if after is None:
            return


def _page(world: World, tenant: str, after: Cursor | None) -> Page:
    partition = control_table.tenant_partition(tenant)
    return retry_transient(
        world,
        lambda: world.store.query(Index.BY_TENANT, partition, descending=True, after=after),
    )
