"""The transaction that ends a job, frees its subject and gives its slot back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..events.rows import event_rows
from ..storage import control_table
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, Transition, job_is
from ..words.event import EventType
from ..words.job import EndReason, HistoryEntry, Job, Lease, Waiting
from ..words.states import State
from ..words.writes import Equals, Update
from .conditions import JOB, LEASE, expiry_as_read, job_as_read, owns_lease
from .quotas import NONE_HELD, return_slot, uncount_active

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import When, Write

DONE_WITH_PAYLOAD: Final = frozenset({State.SUCCEEDED, State.CANCELLED})


@dataclass(frozen=True)
class Ending:
    """How a job ends and frees its subject for good."""

    state: State
    """Terminal, or SETTLING when effects are still open."""
    reason: EndReason | None = None
    message: str = ""
    expired: Lease | None = None
    """The lease as read, when no worker runs the job any more."""
    owns_lease: bool = True
    """False for a superseded job, whose clean-up must not touch the newer lease."""
    settles_to: State | None = None
    """With SETTLING, the state in which the job ends when its last effect is done."""
    entry: HistoryEntry | None = None
    """The client's request that ends the job at once."""

    @property
    def for_good(self) -> State:
        """The end state, once effects are done."""
        return self.settles_to or self.state


def finish_job(world: World, job: Job, ending: Ending, *, unless_held: bool = False) -> Transition:
    """Bring the job to its end (or to SETTLING), free its subject and its slot.

    unless_held: refuse when a job of the tenant waits for a slot, so the caller learns of it.
    Closes: ending twice (the slot would be given back twice), ending a job that another worker
    resumed, succeeding while effects are open.
    """
    ended = _ended(world, job, ending)
    writes: dict[str, Write] = {}
    if ending.owns_lease:
        writes[LEASE] = Update(
            control_table.lease_key(job.tenant, job.subject),
            remove=("job_id", "expires_at", *control_table.NOT_DUE),
            when=(*owns_lease(job), *expiry_as_read(ending.expired)),
        )
    position = Equals("position", job.position)
    when = (*job_as_read(job), position, *_effects_as_judged(job, ending))
    writes[JOB] = job_update(world, job, ended, when=when)
    writes |= return_slot(job, when=NONE_HELD if unless_held else ())
    writes |= uncount_active(job)
    if ended.state.terminal:
        writes |= event_rows(world, ended, EventType.ENDED)
    states = {ending.state, ending.settles_to}
    written = job_is(job.id, lambda now: now.state in states and now.fence == job.fence)
    return Transition(Transaction(f"end_{ended.state.value.lower()}", writes, written), ended)


def _ended(world: World, job: Job, ending: Ending) -> Job:
    settling = ending.state is State.SETTLING
    only_parked = settling and job.effects_open == 0
    return job.model_copy(
        update={
            "state": ending.state,
            "end_reason": ending.reason,
            "settles_to": ending.settles_to,
            "message": ending.message,
            "finished_at": None if settling else world.runtime.now(),
            "has_slot": False,
            "worker": None,
            "receipt": None,
            "retry_at": None,
            "waiting_reason": Waiting.EFFECTS_PARKED if only_parked else None,
            "waiting_since": world.runtime.now() if settling else None,
            "cleanup": cleanup_left(job, ending.for_good),
            **job.noted(ending.entry),
        }
    )


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


def cleanup_left(job: Job, end: State) -> bool:
    """A finished job's stored id list is deleted, but a failed one may be asked to retry."""
    return job.payload is not None and end in DONE_WITH_PAYLOAD
