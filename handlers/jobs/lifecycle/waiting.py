"""What a client is told of a job that waits: why, since when, how many jobs are before it, and
when it should start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.control_table import read_lease
from ..storage.outbox import rows_of_job
from ..storage.transaction import retry_transient
from ..transitions.quotas import MAX_PLACE, lane_use, place_in_line
from ..words.job import Job, Waiting
from ..words.next_start import next_start
from ..words.states import State
from ..words.timing import ms
from ..words.writes import Index

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..words.ports import World
    from ..words.writes import Found

LOOKED_AT: Final = 50
"""Jobs of the tenant that an estimate looks at: the newest."""


OPEN_EFFECTS: Final = 20
"""Open effects of a settling job that are asked for their sinks; the sinks of all are the same,
but for those that have taken a chunk already."""


@dataclass(frozen=True)
class SinkWait:
    """A sink that has not taken all of a job's changes."""

    name: str
    answer: str = ""
    """What it last answered, in words for the tenant; empty before its first answer."""


@dataclass(frozen=True)
class Wait:
    """Why a job waits, and what is known of its end. Times are epoch ms."""

    reason: Waiting
    since: int
    ahead: int | None = None
    """The jobs that start before it; None where nobody counts them."""
    expected_start: int | None = None
    """When it should go on; None where that cannot be known."""
    sinks: tuple[SinkWait, ...] = ()
    """The sinks that a settling job waits for."""


def wait_of(job: Job, now: int) -> Wait | None:
    """What the job's item tells at the time ``now``; None when the job does not wait. Makes no
    call."""
    reason = job.waits_for
    if reason is None:
        return None
    # A job of an older version has no such time.
    since = job.waiting_since if job.waiting_since is not None else job.created_at
    if job.retry_at is not None and since < job.retry_at <= now:
        # Its next try is due: like a fresh job, it waits for a worker.
        return Wait(Waiting.LANE_BUSY, job.retry_at)
    return Wait(reason, since, expected_start=_to_come(job.retry_at, now))


def _to_come(at: int | None, now: int) -> int | None:
    """The time, unless it is over: when the job goes on is not known then."""
    return at if at is not None and at > now else None


def wait_now(world: World, job: Job) -> Wait | None:
    """The same with what other items tell, at the price of up to three reads. Raises Transient,
    Undecodable."""
    wait = wait_of(job, world.runtime.now())
    if job.held and wait is not None:
        stopped = lane_use(world, job.tenant, job.lane).limit == 0
        reason = Waiting.TENANT_STOPPED if stopped else wait.reason
        ahead = place_in_line(world, job) - 1
        expected = None if stopped else expected_start(world, job, ahead)
        return replace(wait, reason=reason, ahead=ahead, expected_start=expected)
    if job.state is State.QUEUED and job.waits_for_slot and wait is not None:
        expected = wait.expected_start or expected_start(world, job)
        return replace(wait, ahead=ahead_in_lane(world, job), expected_start=expected)
    if job.state is State.RUNNING:
        beside = None if wait is None or wait.reason is Waiting.WORKER_LOST else wait
        return _lost_worker(world, job) or beside
    if job.state is State.SETTLING and wait is not None:
        return replace(wait, sinks=_sinks(world, job))
    return wait


def expected_start(world: World, job: Job, ahead: int | None = None) -> int | None:
    """When a job should start that no worker has begun: an estimate from the starts of its
    tenant's newest jobs in the lane. ahead: the tenant's jobs before it; None: counted among those.
    One read. Raises Transient."""
    if job.started_at is not None:
        return None
    page = retry_transient(
        world,
        lambda: world.store.query(
            Index.BY_TENANT,
            control_table.tenant_partition(job.tenant),
            descending=True,
            limit=LOOKED_AT,
        ),
    )
    same = [each for each in map(_neighbour, page.found) if each.lane == job.lane]
    if ahead is None:
        since = control_table.waiting_place(job)
        ahead = sum(each.place is not None and each.place < since for each in same)
    starts = [each.started_at for each in same if each.started_at is not None]
    return next_start(world.runtime.now(), starts, ahead)


@dataclass(frozen=True)
class _Neighbour:
    """What an estimate needs of another job. Its item may be undecodable, so no more is read."""

    lane: str
    started_at: int | None
    place: str | None
    """Its place in the lane's line; None when it is not in it."""


def _neighbour(found: Found) -> _Neighbour:
    item = found.item
    started_at, place = item.get("started_at"), item.get(Index.HELD.sk)
    in_line = str(item.get(Index.HELD.pk, "")).startswith("#")
    return _Neighbour(
        lane=str(item.get("lane")),
        started_at=started_at if isinstance(started_at, int) else None,
        place=str(place) if in_line else None,
    )


def _sinks(world: World, job: Job) -> tuple[SinkWait, ...]:
    """Sorted by name. Raises Transient."""
    answers: dict[str, str] = {}
    rows = rows_of_job(world, job.id, control_table.EFFECT_PREFIX)
    for found in islice(rows, OPEN_EFFECTS):
        said = found.item.get("answers")
        for name in _names(found.item.get("todo")):
            told = said.get(name) if isinstance(said, Mapping) else None
            answers[name] = answers.get(name) or str(told or "")
    return tuple(SinkWait(name, answer) for name, answer in sorted(answers.items()))


def _names(todo: object) -> Iterable[str]:
    return todo if isinstance(todo, Mapping) else ()


def ahead_in_lane(world: World, job: Job) -> int:
    """The jobs of all tenants that have waited longer for a slot of its lane, up to one less than
    ``MAX_PLACE``. Raises Transient."""
    partition, place = control_table.waiting_partition(job.lane), control_table.waiting_place(job)
    return retry_transient(
        world,
        lambda: world.store.count(Index.HELD, partition, before=place, at_most=MAX_PLACE - 1),
    )


def _lost_worker(world: World, job: Job) -> Wait | None:
    """A running job whose lease has expired: its worker is gone, or stands still."""
    lease = retry_transient(world, lambda: read_lease(world, job))
    if lease is None or lease.job_id != job.id or lease.expires_at is None:
        return None
    now = world.runtime.now()
    if lease.expires_at > now:
        return None
    # Its message is received again when its visibility ends, which a beat last moved.
    timing = world.timing.lane(job.lane)
    hidden = ms(timing.visibility - timing.lease_ttl)
    received = _to_come(lease.expires_at + max(0, hidden), now)
    return Wait(Waiting.WORKER_LOST, lease.expires_at, expected_start=received)
