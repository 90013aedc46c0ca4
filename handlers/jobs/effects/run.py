"""Running effects: what must happen outside because a chunk committed.

An effect's row says which records changed, and to which versions. A run reads the records as they
are now and hands them to the sinks, so that a run twice, late or out of order writes today's truth.
A chunk's commit is never undone or repeated because of an effect.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..storage import control_table
from ..storage.transaction import retry_transient
from ..words.effect import Batch, Delivered, Effect, EffectRun, Projection
from ..words.errors import Denied, NotAsked, Transient
from ..words.operation import Change, Remove, Touch
from ..words.timing import ms
from ..words.writes import Put

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..words.job import Job
    from ..words.operation import Plan, Record
    from ..words.ports import Sink, World
    from ..words.writes import Item

SLOW: Final = 1000
"""ms. When a delivery ends later than this after its records were read, they are read once more."""
FRESH: Final = 45_000
"""ms from reading records to the end of a sink's delivery: less than the minute for which an index
remembers the version of a deleted document (``index.gc_deletes``)."""

# --- rows -------------------------------------------------------------------------------------


def sinks_of(world: World, operation: str) -> tuple[str, ...]:
    """The sinks that an operation names and this deployment has."""
    known = world.operations.get(operation)
    return tuple(s for s in (known.sinks if known else ()) if s in world.sinks)


def effect_of_chunk(world: World, job: Job, plans: Iterable[Plan]) -> Effect | None:
    """The effect of a chunk about to be committed; None when no sink has to receive it."""
    sinks = sinks_of(world, job.operation)
    if not sinks:
        return None
    versions = {
        plan.id: plan.version for plan in plans if isinstance(plan.outcome, Change | Remove | Touch)
    }
    if not versions:
        return None
    return Effect(
        job_id=job.id,
        position=job.position,
        tenant=job.tenant,
        operation=job.operation,
        lane=job.lane.value,
        versions=versions,
        todo=dict.fromkeys(sinks),
    )


def effect_row(world: World, effect: Effect) -> Put:
    """The effect's row, due once the worker that commits the chunk has had time to run the
    effect."""
    at = world.runtime.now() + ms(world.timing.effect_grace)
    return Put(
        control_table.effect_key(effect.job_id, effect.position),
        {
            **_attributes(effect),
            **control_table.due(control_table.EFFECT, effect.job_id, at, world.due_shards),
        },
    )


def _attributes(effect: Effect) -> dict[str, Any]:
    return {
        "job_id": effect.job_id,
        "position": effect.position,
        "tenant": effect.tenant,
        "operation": effect.operation,
        "lane": effect.lane,
        # As text: a store takes apart and puts together every entry of a map.
        "versions": json.dumps(dict(effect.versions), separators=(",", ":")),
        "todo": todo_item(effect.todo),
        "tries": effect.tries,
    }


def todo_item(todo: Mapping[str, frozenset[str] | None]) -> Item:
    return {sink: None if ids is None else sorted(ids) for sink, ids in todo.items()}


def effect_of_item(item: Item) -> Effect:
    """The effect in a row."""
    stored: Any = item
    return Effect(
        job_id=stored["job_id"],
        position=int(stored["position"]),
        tenant=stored["tenant"],
        operation=stored["operation"],
        lane=stored["lane"],
        versions=json.loads(stored["versions"]),
        todo={s: None if ids is None else frozenset(ids) for s, ids in stored["todo"].items()},
        tries=int(stored["tries"]),
        parked=bool(stored.get("parked", False)),
    )


# --- running ----------------------------------------------------------------------------------


def run_effect(world: World, effect: Effect) -> EffectRun:
    """Deliver to every sink that has not taken all records; a sink's error is part of the result.

    Raises Transient when the records cannot be read."""
    read_at = world.runtime.now()
    current: Mapping[str, Record] = {}
    if any(name in world.sinks for name in effect.todo):
        # Where no sink is deployed, recovery may not read records.
        current = retry_transient(
            world, lambda: world.records.read(effect.tenant, list(effect.versions))
        )
    todo: dict[str, frozenset[str] | None] = {}
    refused: list[tuple[str, str, str]] = []
    waits: list[int] = []
    answers: dict[str, str] = {}
    error = ""
    sent = False
    for name, ids in effect.todo.items():
        sink = world.sinks.get(name)
        if sink is None:
            continue  # no longer deployed: there is no sink to deliver to
        try:
            delivered = _deliver(world, sink, _batch(effect, ids, current), read_at)
        except Transient as failed:
            todo[name], error = ids, f"{name}: {failed}"
            if not isinstance(failed, NotAsked):
                answers[name] = answer_of(failed)
            sent = sent or not isinstance(failed, NotAsked)
            waits.append(failed.retry_after_ms or 0)
        except Exception as failed:  # noqa: BLE001  a sink's bug is tried again, then parked
            sent = True
            todo[name], error = ids, f"{name}: {type(failed).__name__}: {failed}"
            answers[name] = "Fairlane met an unexpected error while it sent the records"
            world.telemetry.log("sink_crashed", sink=name, job_id=effect.job_id, error=failed)
        else:
            sent = True
            refused += [(name, id_, why) for id_, why in delivered.refused.items()]
            if delivered.again:
                todo[name], error = delivered.again, f"{name}: {len(delivered.again)} to send again"
                answers[name] = "it took some of the records and wants the others later"
                waits.append(delivered.retry_after_ms or 0)
    put_off = bool(todo) and not sent
    asked_ms = max(waits, default=0) or None
    return EffectRun(todo, refused, asked_ms, error, answers=answers, put_off=put_off)


def answer_of(error: Transient) -> str:
    """What a sink answered, for the tenant: without the words and addresses of other systems,
    which are logged."""
    match error:
        case Denied():
            return "the deployment lacks a permission to send to it"
        case _ if error.retry_after_ms:
            return "it asks to wait"
        case _:
            return "it refused the request or did not answer in time"


def _deliver(world: World, sink: Sink, batch: Batch, read_at: int) -> Delivered:
    """Deliver a batch. Records that the sink calls newer are read again, and sent once more if they
    have not changed. Records that were made again meanwhile are sent as they are now.

    Raises Transient, also when the delivery took longer than ``FRESH``: an index may have forgotten
    a deletion made since the records were read, and stored the deleted record again. (A function
    that was frozen in between has not sent yet, and does not.)"""
    _still_fresh(world, read_at)
    delivered = sink.deliver(batch)
    slow = world.runtime.now() - read_at > SLOW
    if back := _made_again(world, batch, slow=slow):
        # At once: the effect's row may be gone, because another run was faster.
        fresh = replace(batch, records=back, instead_of={})
        delivered = _both(delivered, _deliver(world, sink, fresh, world.runtime.now()))
    _still_fresh(world, read_at)
    unchanged = _unchanged(world, batch, delivered.newer) if delivered.newer else ()
    if not unchanged:
        # The records have changed since; the writer of that change has it delivered, too.
        return delivered
    again = sink.deliver(replace(batch, records=unchanged, instead_of=delivered.newer))
    return _both(delivered, replace(again, again=again.again | again.newer.keys()))


def _both(one: Delivered, other: Delivered) -> Delivered:
    """The answers to a batch and to a later one of its records; ``newer`` is the first one's."""
    return Delivered(
        again=one.again | other.again,
        refused={**one.refused, **other.refused},
        newer=one.newer,
        retry_after_ms=max(one.retry_after_ms or 0, other.retry_after_ms or 0) or None,
    )


def _still_fresh(world: World, read_at: int) -> None:
    if world.runtime.now() - read_at > FRESH:
        raise Transient("the records were read too long ago to be sent in order")


def _unchanged(world: World, batch: Batch, ids: Iterable[str]) -> Sequence[Projection]:
    """The records of the batch that still have the version that was sent."""
    wanted = set(ids)
    now = retry_transient(world, lambda: world.records.read(batch.tenant, sorted(wanted)))
    return [
        sent
        for sent in batch.records
        if sent.id in wanted and _version_of(sent.record) == _version_of(now.get(sent.id))
    ]


def _made_again(world: World, batch: Batch, *, slow: bool) -> Sequence[Projection]:
    """The records that are of a lower version than what was sent: each was removed and made again
    meanwhile, and what was sent may have taken its document away. Asked of removals, and of all
    records when the delivery was slow; else no call."""
    sent = {each.id: each for each in batch.records if slow or each.record is None}
    if not sent:
        return ()
    now = retry_transient(world, lambda: world.records.read(batch.tenant, sorted(sent)))
    return [
        Projection(id_, record.version, record)
        for id_, record in now.items()
        if sent[id_].record is None or record.version < sent[id_].version
    ]


def _version_of(record: Record | None) -> int | None:
    return None if record is None else record.version


def _batch(effect: Effect, ids: frozenset[str] | None, current: Mapping[str, Record]) -> Batch:
    return Batch(
        job_id=effect.job_id,
        position=effect.position,
        tenant=effect.tenant,
        operation=effect.operation,
        records=[
            _projection(id_, version, current.get(id_))
            for id_, version in effect.versions.items()
            if ids is None or id_ in ids
        ],
    )


def _projection(id_: str, version: int, record: Record | None) -> Projection:
    return Projection(id_, version if record is None else record.version, record)
