"""Sending the messages of dispatch rows.

The fast path sends a message at once and then drops the row. Nothing that happens there can lose a
job: the row stays until the message is known to be sent, and recovery sends what is left. What
recovery cannot send either is parked after ``max_dispatch_tries``, until an operator asks for a
replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..storage import control_table, outbox
from ..storage.control_table import read_job
from ..storage.job_update import job_update
from ..storage.outbox import ROW, error_of, rows_of_job, rows_of_kinds, since
from ..storage.transaction import Rejected, Transaction, execute, retry_transient
from ..transitions.conditions import JOB, job_as_read
from ..words.errors import OutcomeUnknown, Refused, Transient, Undecodable
from ..words.job import Lane, Waiting
from ..words.messages import Message, group_of, message_for
from ..words.metrics import Metric
from ..words.states import State
from ..words.writes import Delete, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..storage.outbox import Claim
    from ..words.job import Job
    from ..words.ports import World
    from ..words.writes import Found, Item, Write

CLAIM: Final = 30_000
"""ms a claimed dispatch is left to the run that claimed it."""
NOT_SENT: Final = "its message could not be sent to the lane's queue; an operator has to replay it"


def send_dispatch(world: World, job: Job) -> bool:
    """Send the job's newest dispatch. False when that is left to recovery."""
    try:
        refused = world.queues[job.lane].send([message_for(job)])
    except (Transient, OutcomeUnknown) as error:
        world.telemetry.log("dispatch_left", job_id=job.id, tenant=job.tenant, why=str(error))
        return False
    except Exception as error:  # noqa: BLE001  the job is committed; its message is recovery's
        world.telemetry.log("dispatch_crashed", job_id=job.id, tenant=job.tenant, error=error)
        return False
    if refused:
        world.telemetry.log("dispatch_left", job_id=job.id, tenant=job.tenant, why="refused")
        return False
    drop_dispatch(world, job.id, job.dispatches)
    return True


def drop_dispatch(world: World, job_id: str, number: int) -> None:
    """Drop a dispatch row whose message was sent. Left behind, it costs one harmless duplicate."""
    try:
        world.store.transact("dispatch_sent", [Delete(control_table.dispatch_key(job_id, number))])
    except (Transient, OutcomeUnknown, Refused) as error:
        world.telemetry.log("dispatch_row_left", job_id=job_id, why=str(error))


def is_unsent(world: World, job: Job) -> bool:
    """Whether the job's newest message is not known to be sent. Raises Transient."""
    key = control_table.dispatch_key(job.id, job.dispatches)
    return retry_transient(world, lambda: world.store.get(key)) is not None


# --- by recovery ------------------------------------------------------------------------------


def recover_dispatch(world: World, found: Found) -> bool:
    """Send a message that the fast path did not. Sent twice, it does no work twice.

    True when it is sent. Raises Rejected (another run has it) and Transient (not sent: the row says
    when it is tried again)."""
    row = found.item
    at = since(found)
    tries = int(str(row["tries"]))
    claim = outbox.claim(world, "dispatch", found.key, tries=tries, due_at=at, ms=CLAIM)
    try:
        lane = Lane(str(row["lane"]))
        late = max(0, world.runtime.now() - at)
        world.telemetry.duration(Metric.OLDEST_DISPATCH, late, lane=lane)
        _send(world, Message(str(row["job_id"]), lane, group_of(str(row["tenant"]))))
    except Transient as error:
        _not_sent(world, found, claim, str(error), error.retry_after_ms)
        raise
    except OutcomeUnknown as error:
        _not_sent(world, found, claim, str(error))
        raise Transient(str(error)) from error
    except Exception as error:
        _not_sent(world, found, claim, f"{type(error).__name__}: {error}")
        raise
    drop_dispatch(world, _job_id(found), _number(found))
    world.telemetry.count(Metric.DISPATCHES_RECOVERED, lane=lane)
    return True


def _send(world: World, message: Message) -> None:
    if world.queues[message.lane].send([message]):
        raise Transient("the queue refused the message")


def _not_sent(
    world: World, found: Found, claim: Claim, why: str, asked_ms: int | None = None
) -> None:
    if claim.tries >= world.limits.max_dispatch_tries:
        _park(world, found, claim, why)
        return
    later = outbox.retried(
        world, tries=claim.tries, error=why, asked_ms=asked_ms, cap=world.timing.retry_cap
    )
    row = Update(claim.key, set=later, when=claim.holds)
    execute(world, Transaction("dispatch_later", {ROW: row}))


def _park(world: World, found: Found, claim: Claim, why: str) -> None:
    """Give the dispatch up until a replay; a job that waits for its message says so. The row is
    kept for as long as a job's history: recovery then finds that the message is lost."""
    job_id = _job_id(found)
    parked = outbox.parked(world, control_table.PARKED_DISPATCH, job_id, error=why)
    writes: dict[str, Write] = {
        ROW: Update(claim.key, set={**parked, **_kept(world)}, when=claim.holds)
    }
    job = _waiting_job(world, job_id, _number(found))
    if job is not None:
        down = {"waiting_reason": Waiting.DEPENDENCY_DOWN, "waiting_since": world.runtime.now()}
        says = {"message": NOT_SENT, **(down if job.state is State.QUEUED else {})}
        after = job.model_copy(update=says)
        writes[JOB] = job_update(world, job, after, when=job_as_read(job))
    execute(world, Transaction("park_dispatch", writes))
    lanes = [lane for lane in Lane if lane == found.item.get("lane")]
    world.telemetry.count(Metric.DISPATCHES_PARKED, lane=lanes[0] if lanes else None)
    tenant = str(found.item.get("tenant", ""))
    world.telemetry.log("dispatch_parked", job_id=job_id, tenant=tenant, why=why)


def _waiting_job(world: World, job_id: str, number: int) -> Job | None:
    """The job, if it waits for the message of this dispatch. Raises Transient."""
    try:
        job = retry_transient(world, lambda: read_job(world, job_id))
    except Undecodable:
        return None
    if job is None or job.held or job.dispatches != number:
        return None
    lost = job.state is State.RUNNING and job.waiting_reason is Waiting.WORKER_LOST
    return job if lost or job.state is State.QUEUED else None


# --- what is not sent -------------------------------------------------------------------------


@dataclass(frozen=True)
class UnsentDispatch:
    """An open or parked dispatch row."""

    job_id: str
    number: int
    tenant: str
    lane: str
    tries: int
    parked: bool
    error: str
    since: int
    """See ``outbox.since``."""


def unsent_of_job(world: World, job_id: str) -> Iterator[UnsentDispatch]:
    """The job's open and parked dispatches, the oldest first. Raises Transient."""
    return map(_unsent, rows_of_job(world, job_id, control_table.DISPATCH_PREFIX))


def unsent_of_all(world: World) -> Iterator[UnsentDispatch]:
    """All tenants' open and parked dispatches, perhaps a moment old. Raises Transient."""
    kinds = (control_table.PARKED_DISPATCH, control_table.DISPATCH)
    return map(_unsent, rows_of_kinds(world, *kinds))


def replay_dispatch(world: World, unsent: UnsentDispatch) -> bool:
    """Let recovery send a parked dispatch again, from its first try; false when that is not
    possible: another replay was first, its history is over, or its job moved at that moment. Raises
    Transient."""
    key = control_table.dispatch_key(unsent.job_id, unsent.number)
    again = outbox.replayed(world, key, control_table.DISPATCH, unsent.job_id, beside=_kept(world))
    writes: dict[str, Write] = {ROW: again}
    job = _waiting_job(world, unsent.job_id, unsent.number)
    if job is not None and job.message == NOT_SENT:
        queued = {"waiting_reason": None, "waiting_since": world.runtime.now()}
        says = {"message": "", **(queued if job.state is State.QUEUED else {})}
        after = job.model_copy(update=says)
        writes[JOB] = job_update(world, job, after, when=job_as_read(job))
    try:
        execute(world, Transaction("unpark_dispatch", writes))
    except Rejected:
        return False
    world.telemetry.log("dispatch_replayed", job_id=unsent.job_id, tenant=unsent.tenant)
    return True


def _unsent(found: Found) -> UnsentDispatch:
    row = found.item
    return UnsentDispatch(
        job_id=_job_id(found),
        number=_number(found),
        tenant=str(row.get("tenant", "")),
        lane=str(row.get("lane", "")),
        tries=int(str(row["tries"])),
        parked=row.get("parked") is True,
        error=error_of(found),
        since=since(found),
    )


def _job_id(found: Found) -> str:
    return found.key.pk.partition("#")[2]


def _number(found: Found) -> int:
    return int(found.key.sk.rpartition("#")[2])


def _kept(world: World) -> Item:
    return {"expires_at_seconds": world.timing.history_ends(world.runtime.now())}
