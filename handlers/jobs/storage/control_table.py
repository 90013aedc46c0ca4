"""The keys and index partitions of the control table, and jobs and leases as its items."""

from __future__ import annotations

import zlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from ..words.errors import Undecodable
from ..words.job import Counts, Job, Lane, Lease
from ..words.writes import Index, Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from ..words.ports import World
    from ..words.writes import Item, Value

DISPATCH: Final = "dispatch"
DISPATCH_PREFIX: Final = "DISPATCH#"
PARKED_DISPATCH: Final = "parked_dispatch"
"""The kind of dispatches that were given up."""
EFFECT: Final = "effect"
EFFECT_PREFIX: Final = "EFFECT#"
PARKED: Final = "parked"
"""The kind of effects that were given up: recovery passes them over, a replay finds them."""
LEASE: Final = "lease"
ADMIT: Final = "admit"
EVENT: Final = "event"
EVENT_PREFIX: Final = "EVENT#"
PARKED_EVENT: Final = "parked_event"
"""The kind of events that were given up."""
CLEANUP: Final = "cleanup"
OUTCOME_ROWS: Final = MappingProxyType({"failed": "FAILED#", "skipped": "SKIPPED#"})
"""The prefix of the rows of one outcome: each is read without the others."""
MIXED_ROW: Final = "OUTCOME#"
"""The prefix of the rows of version 0.1.0, which hold both outcomes of a chunk."""
REFUSED_ROW: Final = "REFUSED#"
COUNTS: Final = frozenset(Counts.model_fields)
SHARDS: Final = Key("DEPLOYMENT", "SHARDS")


def safe(text: str) -> str:
    """The text without '#', which separates the parts of a key."""
    return quote(text, safe="")


def job_key(job_id: str) -> Key:
    return Key(f"JOB#{job_id}", "JOB")


def lease_key(tenant: str, subject: str) -> Key:
    return Key(f"SUBJECT#{safe(tenant)}#{safe(subject)}", "LEASE")


def request_key(idempotency: str) -> Key:
    return Key(f"REQUEST#{idempotency}", "REQUEST")


def tenant_items(tenant: str) -> str:
    """The partition of what is kept for a tenant: its counts, limits and shares."""
    return f"TENANT#{safe(tenant)}"


def slots_key(tenant: str, lane: Lane) -> Key:
    return Key(tenant_items(tenant), f"SLOTS#{lane}")


def share_key(tenant: str, lane: Lane) -> Key:
    return Key(tenant_items(tenant), f"SHARE#{lane}")


def active_key(tenant: str) -> Key:
    return Key(tenant_items(tenant), "ACTIVE")


def dispatch_key(job_id: str, number: int) -> Key:
    return Key(f"JOB#{job_id}", f"{DISPATCH_PREFIX}{number:06}")


def outcome_key(job_id: str, outcome: str, position: int) -> Key:
    """outcome: a key of ``OUTCOME_ROWS``."""
    return Key(f"JOB#{job_id}", f"{OUTCOME_ROWS[outcome]}{position:012}")


def mixed_key(job_id: str, position: int) -> Key:
    return Key(f"JOB#{job_id}", f"{MIXED_ROW}{position:012}")


def effect_key(job_id: str, position: int) -> Key:
    return Key(f"JOB#{job_id}", f"{EFFECT_PREFIX}{position:012}")


def event_key(job_id: str, fence: int, what: str, listener: str) -> Key:
    return Key(f"JOB#{job_id}", f"{EVENT_PREFIX}{fence:016}#{what}#{listener}")


def refused_key(job_id: str, position: int, tries: int) -> Key:
    return Key(f"JOB#{job_id}", f"{REFUSED_ROW}{position:012}#{tries:04}")


# --- index keys -------------------------------------------------------------------------------


def due_partition(kind: str, shard: int) -> str:
    return f"{kind}#{shard}"


def due(kind: str, of: str, at: int, shards: int) -> dict[str, Value]:
    """The attributes that make recovery look at an item from the time ``at`` (ms) on.

    of: what the item belongs to (job id, tenant); spreads the kind over its shards.
    """
    shard = zlib.crc32(of.encode()) % shards
    return {Index.DUE.pk: due_partition(kind, shard), Index.DUE.sk: at}


NOT_DUE: Final = (Index.DUE.pk, Index.DUE.sk)
NOT_HELD: Final = (Index.HELD.pk, Index.HELD.sk)


def tenant_partition(tenant: str) -> str:
    return safe(tenant)


def held_partition(tenant: str, lane: Lane) -> str:
    return f"{safe(tenant)}#{lane}"


def held(job: Job) -> dict[str, Value]:
    return {Index.HELD.pk: held_partition(job.tenant, job.lane), Index.HELD.sk: job.id}


def waiting_partition(lane: Lane) -> str:
    """The jobs of all tenants that wait for a slot of the lane: no tenant's partition begins with
    '#'. It is one partition, because one call has to see it; only bulk jobs are in it, each while
    it waits."""
    return f"#{lane}"


def waiting_place(job: Job) -> str:
    """The job's place among the waiting jobs of its lane: first what could have started first."""
    since = job.waiting_since if job.waiting_since is not None else job.created_at
    return f"{max(since, job.retry_at or 0):013}#{job.id}"


def waits_for_slot(job: Job) -> dict[str, Value]:
    return {
        Index.HELD.pk: waiting_partition(job.lane),
        Index.HELD.sk: waiting_place(job),
    }


# --- jobs and leases as items -----------------------------------------------------------------


def job_item(world: World, job: Job) -> dict[str, Value]:
    """All attributes of a job's item."""
    return {**stored(job.model_dump(mode="python")), **beside_fields(world, job)}


def beside_fields(world: World, job: Job) -> dict[str, Value]:
    """The attributes of a job's item beside the job's fields: index keys and the item's expiry."""
    attributes: dict[str, Value] = {
        Index.BY_TENANT.pk: tenant_partition(job.tenant),
        Index.BY_TENANT.sk: job.id,
    }
    if job.held:
        attributes |= held(job)
    elif job.waits_for_slot:
        attributes |= waits_for_slot(job)
    if job.cleanup:
        attributes |= due(CLEANUP, job.id, job.created_at, world.due_shards)
    if job.finished_at is not None:
        attributes["expires_at_seconds"] = world.timing.history_ends(job.finished_at)
    return attributes


def stored(attributes: Mapping[str, object]) -> dict[str, Value]:
    """Attributes as the store takes them; None means absent."""
    return {name: _plain(value) for name, value in attributes.items() if value is not None}


def _plain(value: object) -> Value:
    if isinstance(value, BaseModel):
        return {name: _plain(part) for name, part in value.model_dump(exclude_none=True).items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value  # type: ignore[return-value]  # a Job holds nothing else


def job_of(item: Item) -> Job:
    """The job in an item. Raises Undecodable, naming the attributes that do not fit."""
    try:
        return Job.model_validate(dict(item))
    except ValidationError as error:
        problems = error.errors()
        names = ", ".join(str(problem["loc"][0]) for problem in problems if problem["loc"])
        raise Undecodable(
            f"job item: {names or 'not a job'}", new_words=all(map(_is_new_word, problems))
        ) from error


def _is_new_word(problem: ErrorDetails) -> bool:
    return problem["type"] in {"enum", "literal_error"} and isinstance(problem["input"], str)


def readable_part(item: Item, instead: Item) -> Job:
    """The job that an undecodable item still describes: for an event, never for running it.
    Attributes that cannot be read are left out. instead: attributes that replace the item's.
    Raises Undecodable when the counts, or attributes that every job has, cannot be read."""
    known = {**item, "params": "", **instead}
    try:
        return Job.model_validate(known)
    except ValidationError as error:
        broken = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
    try:
        if COUNTS & broken:
            raise Undecodable(f"job item: {', '.join(sorted(COUNTS & broken))}")
        return Job.model_validate({n: v for n, v in known.items() if n not in broken})
    except ValidationError as error:
        raise Undecodable(f"job item: {', '.join(sorted(broken))}") from error


def lease_of(item: Item) -> Lease:
    """The lease in an item. Raises Undecodable."""
    try:
        return Lease.model_validate(dict(item))
    except ValidationError as error:
        raise Undecodable("lease item") from error


def read_job(world: World, job_id: str) -> Job | None:
    """Raises Undecodable, Transient."""
    item = world.store.get(job_key(job_id))
    return None if item is None else job_of(item)


def read_lease(world: World, job: Job) -> Lease | None:
    """The lease of the job's subject, which another job may hold. Raises Undecodable, Transient."""
    item = world.store.get(lease_key(job.tenant, job.subject))
    return None if item is None else lease_of(item)
