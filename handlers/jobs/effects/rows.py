"""Transactions on effect rows, and the end of a job that waits for its last one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows, publish_now
from ..storage import control_table, outbox
from ..storage.job_update import job_update
from ..storage.transaction import Rejected, Transaction, execute, retry_transient
from ..transitions.conditions import EFFECT, JOB
from ..words.errors import Undecodable
from ..words.event import EventType
from ..words.job import Job, Waiting
from ..words.metrics import Metric
from ..words.states import State
from ..words.timing import SECOND, ms
from ..words.writes import AnyOf, Delete, Differs, Equals, Index, Present, Put, Update
from .run import effect_of_item, todo_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..words.effect import Effect, EffectRun
    from ..words.job import Lane
    from ..words.ports import World
    from ..words.writes import Item, Key, When, Write

REFUSED: Final = "refused"

# The last open effect of a settling job ends the job, and that is another transaction.
NOT_THE_LAST: Final[When] = (
    Present("state"),
    AnyOf((Differs("state", State.SETTLING.value), Differs("effects_open", 1))),
)


def record_run(world: World, effect: Effect, ran: EffectRun, lane: Lane) -> bool:
    """Write the result of a run: done, tried again later, or parked. True when the effect is done.

    Raises Transient; what could not be written is run again, which does no harm."""
    try:
        if not ran.todo:
            _done(world, effect, ran)
        elif ran.put_off:
            _put_off(world, effect, ran)
        elif effect.tries_after >= world.limits.max_effect_tries:
            _park(world, effect, ran, lane)
        else:
            _again(world, effect, ran)
    except Rejected:
        # Another run of the same effect was faster.
        world.telemetry.log("effect_overtaken", job_id=effect.job_id, position=effect.position)
        return False
    if ran.refused:
        _tell_refused(world, effect, ran, lane)
    if ran.error:
        world.telemetry.log(
            "effect_failed",
            job_id=effect.job_id,
            tenant=effect.tenant,
            position=effect.position,
            tries=effect.tries_after,
            why=ran.error,
        )
    return not ran.todo


def record_done(world: World, done: Sequence[Effect]) -> bool:
    """Write that a running job's effects are done, all at once. False when that is not possible.

    Raises Transient; what could not be written is run again, which does no harm."""
    first = done[0]
    writes: dict[str, Write] = {
        f"{EFFECT} {effect.position}": Delete(_key(effect), when=_as_read(effect))
        for effect in done
    }
    writes[JOB] = Update(
        control_table.job_key(first.job_id),
        add={"effects_open": -len(done), "effects_done": len(done)},
        when=(Present("state"), Differs("state", State.SETTLING.value)),
    )
    try:
        _write(world, first, Transaction("effects_done", writes))
    except Rejected:
        return False
    return True


def claim_effect(world: World, effect: Effect, due_at: int) -> Effect:
    """Take a due effect for one run. Raises Rejected, Transient."""
    claimed = outbox.claim(
        world,
        "effect",
        _key(effect),
        tries=effect.tries,
        due_at=due_at,
        ms=ms(world.timing.effect_claim),
    )
    return replace(effect, tries=claimed.tries, claimed_until=claimed.until)


def replay_effect(world: World, effect: Effect) -> None:
    """Run a parked effect again from its first try. Raises Rejected, Transient."""
    job = _readable_job(world, effect.job_id)
    row = outbox.replayed(world, _key(effect), control_table.EFFECT, effect.job_id)
    writes: dict[str, Write] = {EFFECT: row}
    if job is not None:
        writes[JOB] = Update(
            control_table.job_key(job.id),
            add={"effects_open": 1, "effects_parked": -1},
            remove=("waiting_reason",) if job.state is State.SETTLING else (),
            when=(Equals("state", job.state.value),),
        )
    execute(world, Transaction("unpark_effect", writes))


# --- inside -----------------------------------------------------------------------------------


def _key(effect: Effect) -> Key:
    return control_table.effect_key(effect.job_id, effect.position)


def _readable_job(world: World, job_id: str) -> Job | None:
    """The job, or what can be read of it: its effects are done and parked even when no version can
    run it. Raises Transient, Undecodable."""
    item = retry_transient(world, lambda: world.store.get(control_table.job_key(job_id)))
    if item is None:
        return None
    try:
        return control_table.job_of(item)
    except Undecodable:
        return control_table.readable_part(item, {})


def _as_read(effect: Effect) -> When:
    return outbox.as_read(effect.tries, effect.claimed_until)


def _done(world: World, effect: Effect, ran: EffectRun) -> None:
    writes: dict[str, Write] = {
        EFFECT: Delete(_key(effect), when=_as_read(effect)),
        JOB: Update(
            control_table.job_key(effect.job_id),
            add={"effects_open": -1, "effects_done": 1, **_count(ran)},
            when=NOT_THE_LAST,
        ),
        **_refused(world, effect, ran),
    }
    try:
        _write(world, effect, Transaction("effect_done", writes))
    except Rejected as rejected:
        if EFFECT in rejected.reasons:
            raise
        _done_last(world, effect, ran, writes)


def _done_last(world: World, effect: Effect, ran: EffectRun, writes: dict[str, Write]) -> None:
    """The last open effect of a settling job: the job ends with it, unless one is parked."""
    job = _readable_job(world, effect.job_id)
    if job is None:
        # The job's history is over; there are no counts left to change.
        _write(world, effect, Transaction("effect_done", {EFFECT: writes[EFFECT]}))
        return
    if job.state is not State.SETTLING or job.effects_open != 1:
        raise Rejected("effect_done", {})
    after = _without_last_effect(world, job, ran)
    as_read = (
        Equals("state", State.SETTLING.value),
        Equals("effects_open", 1),
        Equals("effects_parked", job.effects_parked),
    )
    ended = event_rows(world, after, EventType.ENDED) if after.state.terminal else {}
    update = job_update(world, job, after, when=as_read)
    last = Transaction("last_effect_done", {**writes, JOB: update, **ended})
    _write(world, effect, last)
    publish_now(world, last)
    _measure_end(world, after)


def _without_last_effect(world: World, job: Job, ran: EffectRun) -> Job:
    """A settling job once its last open effect is done: ended, unless one is parked."""
    ended = {
        "state": job.settles_to or State.SUCCEEDED,
        "settles_to": None,
        "finished_at": world.runtime.now(),
        "waiting_reason": None,
        "waiting_since": None,
    }
    return job.model_copy(
        update={
            **({"waiting_reason": Waiting.EFFECTS_PARKED} if job.effects_parked else ended),
            "effects_open": 0,
            "effects_done": job.effects_done + 1,
            "effects_refused": job.effects_refused + len(ran.refused),
        }
    )


def _again(world: World, effect: Effect, ran: EffectRun) -> None:
    later = outbox.retried(
        world, tries=effect.tries_after, error=ran.error, asked_ms=ran.retry_after_ms
    )
    writes: dict[str, Write] = {
        EFFECT: Update(_key(effect), set={**_tried(effect, ran), **later}, when=_as_read(effect)),
        **_refused(world, effect, ran),
        **_count_refused(effect, ran),
    }
    _write(world, effect, Transaction("effect_again", writes))


def _put_off(world: World, effect: Effect, ran: EffectRun) -> None:
    """Due again when the sink's pause is over, in the order of chance: not all at once. A claim's
    try is taken back."""
    at = world.runtime.now() + (ran.retry_after_ms or 0) + round(world.runtime.random() * SECOND)
    row = Update(
        _key(effect),
        set={Index.DUE.sk: at, "last_error": ran.error},
        add={} if effect.claimed_until is None else {"tries": -1},
        when=_as_read(effect),
    )
    _write(world, effect, Transaction("effect_put_off", {EFFECT: row}))


def _park(world: World, effect: Effect, ran: EffectRun, lane: Lane) -> None:
    job = _readable_job(world, effect.job_id)
    if job is None:
        raise Rejected("park_effect", {})
    waits = job.state is State.SETTLING and job.effects_open == 1
    row = outbox.parked(world, control_table.PARKED, job.id, error=ran.error)
    writes: dict[str, Write] = {
        EFFECT: Update(_key(effect), set={**_tried(effect, ran), **row}, when=_as_read(effect)),
        JOB: Update(
            control_table.job_key(job.id),
            set={"waiting_reason": Waiting.EFFECTS_PARKED.value} if waits else {},
            add={"effects_open": -1, "effects_parked": 1, **_count(ran)},
            when=(Equals("state", job.state.value), Equals("effects_open", job.effects_open)),
        ),
        **_refused(world, effect, ran),
    }
    _write(world, effect, Transaction("park_effect", writes))
    world.telemetry.count(Metric.EFFECTS_PARKED, lane=lane, operation=effect.operation)
    world.telemetry.log(
        "effect_parked",
        job_id=effect.job_id,
        tenant=effect.tenant,
        position=effect.position,
        why=ran.error,
    )


def _tried(effect: Effect, ran: EffectRun) -> Item:
    answers: Item = {"answers": dict(ran.answers)} if ran.answers else {}
    return {"todo": todo_item(ran.todo), "tries": effect.tries_after, **answers}


def _write(world: World, effect: Effect, transaction: Transaction) -> None:
    execute(world, replace(transaction, applied=partial(_written, effect)))


def _written(effect: Effect, world: World) -> bool:
    row = world.store.get(_key(effect))
    if row is None or effect_of_item(row).tries > effect.tries:
        return True
    return effect.claimed_until is not None and row[Index.DUE.sk] != effect.claimed_until


def _count(ran: EffectRun) -> dict[str, int]:
    return {"effects_refused": len(ran.refused)} if ran.refused else {}


def _count_refused(effect: Effect, ran: EffectRun) -> dict[str, Write]:
    if not ran.refused:
        return {}
    key = control_table.job_key(effect.job_id)
    return {JOB: Update(key, add=_count(ran), when=(Present("state"),))}


def _refused(world: World, effect: Effect, ran: EffectRun) -> dict[str, Write]:
    """The row that lists the records a sink refused for good."""
    if not ran.refused:
        return {}
    listed = [{"sink": s, "id": i, "reason": why} for s, i, why in ran.refused]
    expires = world.timing.row_ends(world.runtime.now())
    key = control_table.refused_key(effect.job_id, effect.position, effect.tries)
    return {REFUSED: Put(key, {"refused": listed, "expires_at_seconds": expires})}


def _tell_refused(world: World, effect: Effect, ran: EffectRun, lane: Lane) -> None:
    number = len(ran.refused)
    world.telemetry.count(Metric.EFFECTS_REFUSED, number, lane=lane, operation=effect.operation)
    sink, record_id, why = ran.refused[0]
    world.telemetry.log(
        "effect_refused",
        job_id=effect.job_id,
        tenant=effect.tenant,
        position=effect.position,
        number=number,
        sink=sink,
        record_id=record_id,
        why=why,
    )


def _measure_end(world: World, job: Job) -> None:
    world.telemetry.log(
        "job_settled", job_id=job.id, tenant=job.tenant, state=job.settles_to or job.state
    )
