"""The counters of a tenant: slots of each lane, held jobs, active jobs.

Each count changes in the transaction that changes the job, so none can drift. A limit of a tenant's
own is stored beside its count, where a condition can compare the two without a read. Without one,
the deployment's limit holds. A limit of 0 stops the tenant: no slots hold its new jobs, no active
jobs refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.transaction import Transaction, execute, retry_transient
from ..words.job import Job, Lane
from ..words.states import SUBJECT_TAKEN
from ..words.timing import ms
from ..words.writes import (
    AnyOf,
    AtMost,
    Below,
    BelowName,
    Check,
    Differs,
    Index,
    Missing,
    Present,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..words.ports import World
    from ..words.writes import Item, Key, Value, When, Write

SLOTS: Final = "slots"
ACTIVE: Final = "active"

IN_FLIGHT: Final = "in_flight"
HELD: Final = "held"
JOBS: Final = "jobs"
OWN_LIMIT: Final = "own_limit"
"""The tenant's own limit for ``in_flight`` or ``jobs`` of the same item."""

MAX_PLACE: Final = 1000
"""The place in line that also stands for every later one."""

NONE_HELD: Final[When] = (AnyOf((Missing(HELD), AtMost(HELD, 0))),)
NOT_STOPPED: Final = Differs(OWN_LIMIT, 0)

# --- slots of a lane --------------------------------------------------------------------------


def take_slot(world: World, job: Job) -> dict[str, Write]:
    """Count the job as in flight, if there is room and no job of the tenant is held; or count a
    held job."""
    key = control_table.slots_key(job.tenant, job.lane)
    if job.held:
        return {SLOTS: Update(key, add={HELD: 1}, set=wake_admission(world, job))}
    return {SLOTS: Update(key, add={IN_FLIGHT: 1}, when=(*slot_free(world, job), *NONE_HELD))}


def return_slot(job: Job, *, when: When = ()) -> dict[str, Write]:
    """Give back what the tenant's counters hold for the job."""
    key = control_table.slots_key(job.tenant, job.lane)
    if job.has_slot:
        return {SLOTS: Update(key, add={IN_FLIGHT: -1}, when=when)}
    if job.held:
        return {SLOTS: Update(key, add={HELD: -1})}
    return {}


def exchange_slots(world: World, job: Job, old: Job) -> dict[str, Write]:
    """The old job's slot goes back and the new one takes its own; one write per counter item. A
    stopped tenant's new job takes none, not even the old one's."""
    left = {} if not old.has_slot else {IN_FLIGHT: -1}
    if job.lane is not old.lane:
        writes: dict[str, Write] = dict(take_slot(world, job))
        if left:
            writes["old slots"] = Update(control_table.slots_key(old.tenant, old.lane), add=left)
        return writes
    if job.held:
        add = {HELD: 1, **left}
        return {
            SLOTS: Update(
                control_table.slots_key(job.tenant, job.lane),
                add=add,
                set=wake_admission(world, job),
            )
        }
    if left:
        return {SLOTS: Check(control_table.slots_key(job.tenant, job.lane), (NOT_STOPPED,))}
    return dict(take_slot(world, job))


def admit_to_slot(world: World, job: Job) -> dict[str, Write]:
    """Count a held job as in flight instead, if there is room."""
    key = control_table.slots_key(job.tenant, job.lane)
    return {SLOTS: Update(key, add={IN_FLIGHT: 1, HELD: -1}, when=slot_free(world, job))}


def slot_free(world: World, job: Job) -> When:
    return _below(IN_FLIGHT, world.limits.tenant_slots(job.lane))


def wake_admission(world: World, job: Job) -> dict[str, Value]:
    """The attributes that make recovery look at the counters while a job is held."""
    at = world.runtime.now() + ms(world.timing.dispatch_grace)
    return {
        "tenant": job.tenant,
        "lane": job.lane.value,
        **control_table.due(control_table.ADMIT, job.tenant, at, world.due_shards),
    }


def place_in_line(world: World, job: Job) -> int:
    """The job's place among the held jobs of its tenant: 1 is admitted next, ``MAX_PLACE`` stands
    for that place or a later one. Raises Transient."""
    partition = control_table.held_partition(job.tenant, job.lane)
    before = retry_transient(
        world,
        lambda: world.store.count(Index.HELD, partition, before=job.id, at_most=MAX_PLACE - 1),
    )
    return before + 1


# --- active jobs ------------------------------------------------------------------------------


def count_active(world: World, job: Job) -> dict[str, Write]:
    """The job is active from here on, if the tenant may have one more."""
    when = _below(JOBS, world.limits.max_active_jobs_per_tenant)
    return {ACTIVE: Update(control_table.active_key(job.tenant), add={JOBS: 1}, when=when)}


def exchange_active(job: Job) -> dict[str, Write]:
    """An active job ends and this one begins: their count stays, unless the tenant is stopped."""
    return {ACTIVE: Check(control_table.active_key(job.tenant), (NOT_STOPPED,))}


def uncount_active(job: Job) -> dict[str, Write]:
    """The job is no longer active, if it was."""
    if job.state not in SUBJECT_TAKEN:
        return {}
    return {ACTIVE: Update(control_table.active_key(job.tenant), add={JOBS: -1})}


def active_limit(world: World, item: Item | None) -> int:
    """How many active jobs a tenant may have. item: the item of its active count."""
    own = (item or {}).get(OWN_LIMIT)
    return own if isinstance(own, int) else world.limits.max_active_jobs_per_tenant


def _below(count: str, limit: int) -> When:
    """The count is below the tenant's own limit, if there is one, else below this one."""
    return (
        NOT_STOPPED,
        AnyOf((Missing(count), Missing(OWN_LIMIT), BelowName(count, OWN_LIMIT))),
        AnyOf((Missing(count), Present(OWN_LIMIT), Below(count, limit))),
    )


# --- reading and setting limits ---------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """A count and its limit."""

    count: int
    limit: int
    own: bool
    """The limit is the tenant's own, not the deployment's."""
    held: int = 0


@dataclass(frozen=True)
class Usage:
    lanes: Mapping[Lane, Use]
    active: Use


def usage(world: World, tenant: str) -> Usage:
    """A tenant's counts and their limits. Three reads. Raises Transient."""
    return Usage(
        {lane: lane_use(world, tenant, lane) for lane in Lane},
        _use(
            world, control_table.active_key(tenant), JOBS, world.limits.max_active_jobs_per_tenant
        ),
    )


def known_tenant(world: World, tenant: str) -> bool:
    """Whether the tenant ever had a job, or a limit of its own. Raises Transient."""
    kept = control_table.tenant_items(tenant)
    page = retry_transient(world, lambda: world.store.query_partition(kept, sk_prefix="", limit=1))
    return bool(page.found)


def lane_use(world: World, tenant: str, lane: Lane) -> Use:
    """The tenant's slots of one lane: their count and its limit. Raises Transient."""
    return _use(
        world, control_table.slots_key(tenant, lane), IN_FLIGHT, world.limits.tenant_slots(lane)
    )


def _use(world: World, key: Key, count: str, limit: int) -> Use:
    item = retry_transient(world, lambda: world.store.get(key)) or {}
    own = item.get(OWN_LIMIT)
    return Use(
        count=_number(item.get(count)),
        limit=own if isinstance(own, int) else limit,
        own=isinstance(own, int),
        held=_number(item.get(HELD)),
    )


def _number(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


def set_slots(world: World, tenant: str, lane: Lane, limit: int | None) -> None:
    """Set a limit of the tenant's own; None: the deployment's again; 0: new jobs are held. Jobs in
    flight above it run on. Jobs held because of a lower one are admitted by
    ``admission.admit_held`` or by the next recovery run. Raises Transient, ValueError."""
    _set(world, control_table.slots_key(tenant, lane), limit)


def set_most_active(world: World, tenant: str, limit: int | None) -> None:
    """As ``set_slots``, for active jobs over both lanes; 0: new jobs are refused. Raises Transient,
    ValueError."""
    _set(world, control_table.active_key(tenant), limit)


def _set(world: World, key: Key, limit: int | None) -> None:
    if limit is None:
        update = Update(key, remove=(OWN_LIMIT,))
    elif limit < 0:
        raise ValueError(f"the limit is {limit}; it must be at least 0")
    else:
        update = Update(key, set={OWN_LIMIT: limit})
    execute(world, Transaction("set_limit", {ACTIVE: update}))
