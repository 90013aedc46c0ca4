"""Failing a job that cannot even be read, so that its subject does not stay taken for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import items
from .model import EndReason, Lane, Waiting
from .settle import Rejected, carry_out, insist
from .states import SUBJECT_TAKEN, State, reason_for
from .store import Equals, Missing, Update
from .tenants import ACTIVE, HELD, IN_FLIGHT, JOBS, SLOTS
from .transactions import JOB, LEASE, Transaction

if TYPE_CHECKING:
    from .ports import World
    from .store import Item, Write

# A job that was asked to cancel or pause takes the edge it was on.
WAY_OUT: Final = {
    State.QUEUED: (State.FAILED,),
    State.RUNNING: (State.FAILED,),
    State.SETTLING: (State.FAILED,),
    State.CANCELLING: (State.CANCELLED,),
    State.PAUSING: (State.PAUSED, State.CANCELLED),
    State.PAUSED: (State.CANCELLED,),
}


def bury(world: World, job_id: str, item: Item, why: str) -> bool:
    """End a job by what can be made out of its raw item; safe to repeat. False when it was moved
    since it was read: then it may be somebody's who can read it, and so may its subject.
    Raises Transient."""
    world.telemetry.log("job_undecodable", job_id=job_id, why=why)
    state = _state(item)
    for after in WAY_OUT.get(state, ()) if state else (State.FAILED,):
        if not _write(world, job_id, item, state, after, why):
            return False
        state = after
    _release(world, job_id, item)
    return True


def _state(item: Item) -> State | None:
    try:
        return State(str(item.get("state")))
    except ValueError:
        return None


def _write(
    world: World, job_id: str, item: Item, state: State | None, after: State, why: str
) -> bool:
    if state is not None:
        reason_for(state, after)
    now = world.runtime.now()
    before = (
        Missing("state")
        if "state" not in item
        else Equals("state", state.value if state else item["state"])
    )
    writes: dict[str, Write] = {
        JOB: Update(
            items.job_key(job_id),
            set={
                "state": after.value,
                "end_reason": EndReason.UNDECODABLE.value,
                "message": why,
                "finished_at": now,
                "has_slot": False,
                "expires_at_seconds": now // 1000 + world.timing.history,
            },
            remove=(*items.NOT_HELD, *items.NOT_DUE),
            when=(before,),
        )
    }
    writes |= _counts(item, state, after)
    transaction = Transaction("bury", writes)
    try:
        carry_out(world, transaction, applied=lambda: _is(world, job_id, after))
    except Rejected:
        world.telemetry.log("burial_overtaken", job_id=job_id)
        return False
    return True


def _counts(item: Item, state: State | None, after: State) -> dict[str, Write]:
    """What its tenant's counters still hold for it, as far as the item says."""
    writes: dict[str, Write] = {}
    tenant, lane = item.get("tenant"), _lane(item)
    if not isinstance(tenant, str):
        return writes
    if lane and state is not State.PAUSED:
        held = item.get("waiting_reason") == Waiting.TENANT_LIMIT.value
        count = IN_FLIGHT if item.get("has_slot") is True else HELD if held else None
        if count is not None:
            writes[SLOTS] = Update(items.slots_key(tenant, lane), add={count: -1})
    active = "finished_at" not in item if state is None else state in SUBJECT_TAKEN
    if active and after.terminal:
        writes[ACTIVE] = Update(items.active_key(tenant), add={JOBS: -1})
    return writes


def _is(world: World, job_id: str, state: State) -> bool:
    item = world.store.get(items.job_key(job_id))
    return item is not None and item.get("state") == state.value


def _lane(item: Item) -> Lane | None:
    try:
        return Lane(str(item.get("lane")))
    except ValueError:
        return None


def _release(world: World, job_id: str, item: Item) -> None:
    """Free the subject if the item still says which one and the job still holds it."""
    tenant, subject = item.get("tenant"), item.get("subject")
    if not isinstance(tenant, str) or not isinstance(subject, str):
        world.telemetry.log("subject_unknown", job_id=job_id)
        return
    key = items.lease_key(tenant, subject)
    held = insist(world, lambda: world.store.get(key))
    if held is None or held.get("job_id") != job_id:
        return
    release = Update(
        key,
        remove=("job_id", "expires_at", *items.NOT_DUE),
        when=(Equals("job_id", job_id), Equals("fence", held["fence"])),
    )
    try:
        carry_out(world, Transaction("release", {LEASE: release}), applied=lambda: False)
    except Rejected:
        world.telemetry.log("release_overtaken", job_id=job_id)
