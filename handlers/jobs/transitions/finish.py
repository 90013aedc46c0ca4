"""The transaction that ends a job, frees its subject and gives its slot back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows
from ..storage import control_table
from ..storage.transaction import Transaction
from ..words.event import EventType
from ..words.job import EndReason, Job, Lease, Waiting
from ..words.states import State
from ..words.writes import Equals, Update
from .conditions import JOB, LEASE, expiry_as_read, job_as_read, move_state, owns_lease
from .quotas import NOBODY_HELD, return_slot, uncount_active

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import Value, When, Write

DONE_WITH_PAYLOAD: Final = frozenset({State.SUCCEEDED, State.CANCELLED})


@dataclass(frozen=True)
class Ending:
    """How a job leaves its subject for good."""

    state: State
    """Terminal, or SETTLING when effects are still open."""
    reason: EndReason | None = None
    message: str = ""
    expired: Lease | None = None
    """The lease as read, when nobody is running the job any more."""
    owns_lease: bool = True
    """False for a superseded job, whose clean-up must not touch the newer lease."""
    settles_to: State | None = None
    """With SETTLING, how it ends when the last effect is done."""

    @property
    def for_good(self) -> State:
        """The end state, once effects are done."""
        return self.settles_to or self.state


def finish_job(world: World, job: Job, ending: Ending, *, unless_held: bool = False) -> Transaction:
    """Bring the job to its end (or to SETTLING), free its subject and its slot.

    unless_held: refuse when a job of the tenant waits for a slot, so the caller learns of it.
    Closes: ending twice (the slot would be given back twice), ending what somebody else resumed,
    succeeding while effects are open.
    """
    writes: dict[str, Write] = {}
    if ending.owns_lease:
        writes[LEASE] = Update(
            control_table.lease_key(job.tenant, job.subject),
            remove=("job_id", "expires_at", *control_table.NOT_DUE),
            when=(*owns_lease(job), *expiry_as_read(ending.expired)),
        )
    only_parked = ending.state is State.SETTLING and job.effects_open == 0
    gone = () if only_parked else ("waiting_reason",)
    writes[JOB] = move_state(
        job,
        ending.state,
        set_={"message": ending.message, "has_slot": False, **_end_attributes(world, job, ending)},
        remove=("worker", "receipt", "retry_at", *gone, *control_table.NOT_HELD),
        when=(
            *job_as_read(job),
            Equals("position", job.position),
            *_effects_as_judged(job, ending),
        ),
    )
    writes |= return_slot(job, when=NOBODY_HELD if unless_held else ())
    writes |= uncount_active(job)
    if ending.state.terminal:
        writes |= event_rows(world, _ended_job(world, job, ending), EventType.ENDED)
    return Transaction(f"end_{ending.state.value.lower()}", writes)


def _ended_job(world: World, job: Job, ending: Ending) -> Job:
    return job.model_copy(
        update={
            "state": ending.state,
            "end_reason": ending.reason,
            "finished_at": world.runtime.now(),
            "waiting_reason": None,
        }
    )


def _end_attributes(world: World, job: Job, ending: Ending) -> dict[str, Value]:
    now = world.runtime.now()
    attributes = control_table.stored(
        {"end_reason": ending.reason, "settles_to": ending.settles_to}
    )
    if ending.state.terminal:
        attributes |= {
            "finished_at": now,
            "expires_at_seconds": world.timing.history_ends(now),
        }
    if ending.state is State.SETTLING and job.effects_open == 0:
        attributes["waiting_reason"] = Waiting.EFFECTS_PARKED.value
    return attributes | cleanup_note(world, replace_state(job, ending.for_good))


def _effects_as_judged(job: Job, ending: Ending) -> When:
    """A job succeeds only with no effect left, and settles only while there is one."""
    if ending.state is State.SUCCEEDED:
        return (Equals("effects_open", 0), Equals("effects_parked", 0))
    if ending.state is State.SETTLING:
        return (
            Equals("effects_open", job.effects_open),
            Equals("effects_parked", job.effects_parked),
        )
    return ()


def replace_state(job: Job, state: State) -> Job:
    return job.model_copy(update={"state": state})


def cleanup_left(job: Job) -> bool:
    """A finished job's stored id list is deleted, but a failed one may be asked to retry."""
    return job.payload is not None and job.state in DONE_WITH_PAYLOAD


def cleanup_note(world: World, ended: Job) -> dict[str, Value]:
    """What an ended job's item says while clean-up is left, for recovery to find it."""
    if not cleanup_left(ended):
        return {}
    now = world.runtime.now()
    return {
        "cleanup": True,
        **control_table.due(control_table.CLEANUP, ended.id, now, world.due_shards),
    }
