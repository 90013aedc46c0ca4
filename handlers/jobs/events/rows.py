"""An event's rows: one for each listener, like any other outbox row.

A row is written in the transaction that makes the event true, and deleted when the listener has
taken the event: at once by the process that wrote the row, if that process can reach the listener,
else by recovery (``delivery``). No job waits for its listeners.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..storage import control_table
from ..words.errors import OutcomeUnknown, Refused, Transient
from ..words.event import ADDRESS, EVENT_BUS, EventType, JobEvent, NotTaken
from ..words.timing import ms
from ..words.writes import Delete, Equals, Put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..storage.transaction import Transaction
    from ..words.job import Job
    from ..words.ports import World
    from ..words.writes import Item, Key, Write
EVENT_ROLE: Final = "event "

# --- rows -------------------------------------------------------------------------------------


def row_key(event: JobEvent) -> Key:
    return control_table.event_key(event.job_id, event.fence, event.what.value, event.listener)


def event_rows(world: World, job: Job, what: EventType) -> dict[str, Write]:
    """The rows of an event, by role, with the job as it is afterwards; none without a listener."""
    listeners: dict[str, str | None] = {EVENT_BUS: None} if EVENT_BUS in world.listeners else {}
    if job.notify is not None:
        listeners[ADDRESS] = job.notify
    if not listeners:
        return {}
    detail = _detail(job, what)
    return {
        EVENT_ROLE + name: _row(world, _event(job, what, detail, name, to))
        for name, to in listeners.items()
    }


def _event(job: Job, what: EventType, detail: str, listener: str, to: str | None) -> JobEvent:
    return JobEvent(job.id, job.tenant, job.lane.value, job.fence, what, listener, to, detail)


def _row(world: World, event: JobEvent) -> Put:
    # The process that writes the row delivers first, if it can.
    wait = ms(world.timing.effect_grace) if _delivers_now(world, event.listener) else 0
    at = world.runtime.now() + wait
    item: dict[str, Any] = {
        "job_id": event.job_id,
        "tenant": event.tenant,
        "lane": event.lane,
        "fence": event.fence,
        "what": event.what.value,
        "listener": event.listener,
        "detail": event.detail,
        "tries": event.tries,
        # An event that could not be delivered goes with the history of jobs.
        "expires_at_seconds": world.timing.history_ends(world.runtime.now()),
        **({} if event.to is None else {"to": event.to}),
        **control_table.due(control_table.EVENT, event.job_id, at, world.due_shards),
    }
    return Put(row_key(event), item)


def event_of(item: Item) -> JobEvent:
    """The event in a row."""
    stored: Any = item
    return JobEvent(
        job_id=stored["job_id"],
        tenant=stored["tenant"],
        lane=stored["lane"],
        fence=int(stored["fence"]),
        what=EventType(stored["what"]),
        listener=stored["listener"],
        to=stored.get("to"),
        detail=stored["detail"],
        tries=int(stored["tries"]),
    )


def _detail(job: Job, what: EventType) -> str:
    """The event as JSON; times as the API writes them."""
    about: Mapping[str, object] = {
        "id": job.id,
        "tenant": job.tenant,
        "subject": job.subject,
        "operation": job.operation,
        "lane": job.lane.value,
        "state": job.state.value,
        "end_reason": job.end_reason.value if job.end_reason else None,
        "message": job.message or None,
        "waiting_reason": job.waiting_reason.value if job.waiting_reason else None,
        "total": job.total,
        **job.counts.model_dump(),
        "labels": dict(job.labels) or None,
        "retry_of": job.retry_of,
        "created_at": _time(job.created_at),
        "started_at": _time(job.started_at),
        "finished_at": _time(job.finished_at),
    }
    event = {
        "key": f"{job.id}:{what}:{job.fence}",
        "event": what.value,
        "sequence": job.fence,
        "job": {name: value for name, value in about.items() if value is not None},
    }
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def _time(at: int | None) -> str | None:
    if at is None:
        return None
    text = datetime.fromtimestamp(at / 1000, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


# --- delivery at once -------------------------------------------------------------------------


def publish_now(world: World, transaction: Transaction) -> None:
    """Deliver the events of a transaction that took effect, as far as this process can reach their
    listeners. Never raises: recovery delivers the others."""
    for role, write in transaction.writes.items():
        if role.startswith(EVENT_ROLE) and isinstance(write, Put):
            event = event_of(write.item)
            if _delivers_now(world, event.listener):
                _deliver_now(world, event)


def _delivers_now(world: World, listener: str) -> bool:
    """Whether this process delivers to the listener at once. Never to an address, not even in
    recovery: the rest of its run must not wait for a tenant's server."""
    return listener != ADDRESS and listener in world.listeners


def _deliver_now(world: World, event: JobEvent) -> None:
    try:
        world.listeners[event.listener].deliver_event(event)
    except (Transient, NotTaken) as error:
        world.telemetry.log("event_left", job_id=event.job_id, tenant=event.tenant, why=str(error))
        return
    except Exception as error:  # noqa: BLE001  a listener's bug is no reason to stop a job
        world.telemetry.log("event_crashed", job_id=event.job_id, tenant=event.tenant, error=error)
        return
    try:
        delivered = Delete(row_key(event), when=(Equals("tries", event.tries),))
        world.store.transact("event_told", [delivered])
    except (Transient, OutcomeUnknown, Refused) as error:
        world.telemetry.log("event_row_left", job_id=event.job_id, why=str(error))
