"""Transactions by which a job leaves its worker: ended, paused, let go, or asked to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import items
from .events import Happened, event_rows
from .model import EndReason, Job, Lane, Lease, Waiting
from .states import State
from .store import Equals, Update
from .tenants import NOBODY_HELD, leave_slot, one_less
from .timing import ms
from .transactions import (
    DISPATCH,
    JOB,
    LEASE,
    Transaction,
    as_read,
    dispatch,
    expiry_as_read,
    mine,
    move,
)

if TYPE_CHECKING:
    from .ports import World
    from .store import Value, When, Write


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


def end(world: World, job: Job, ending: Ending, *, unless_held: bool = False) -> Transaction:
    """Bring the job to its end (or to SETTLING), free its subject and its slot.

    unless_held: refuse when a job of the tenant waits for a slot, so the caller learns of it.
    Closes: ending twice (the slot would be given back twice), ending what somebody else resumed,
    succeeding while effects are open.
    """
    writes: dict[str, Write] = {}
    if ending.owns_lease:
        writes[LEASE] = Update(
            items.lease_key(job.tenant, job.subject),
            remove=("job_id", "expires_at", *items.NOT_DUE),
            when=(*mine(job), *expiry_as_read(ending.expired)),
        )
    only_parked = ending.state is State.SETTLING and job.effects_open == 0
    gone = () if only_parked else ("waiting_reason",)
    writes[JOB] = move(
        job,
        ending.state,
        set_={"message": ending.message, "has_slot": False, **_end_attributes(world, job, ending)},
        remove=("worker", "receipt", "retry_at", *gone, *items.NOT_HELD),
        when=(*as_read(job), Equals("position", job.position), *_effects_as_judged(job, ending)),
    )
    writes |= leave_slot(job, when=NOBODY_HELD if unless_held else ())
    writes |= one_less(job)
    if ending.state.terminal:
        writes |= event_rows(world, _ended(world, job, ending), Happened.ENDED)
    return Transaction(f"end_{ending.state.value.lower()}", writes)


def _ended(world: World, job: Job, ending: Ending) -> Job:
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
    attributes = items.stored({"end_reason": ending.reason, "settles_to": ending.settles_to})
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
    return {"cleanup": True, **items.due(items.CLEANUP, ended.id, now, world.due_shards)}


def pause(job: Job, expired: Lease | None = None) -> tuple[Transaction, Job]:
    """QUEUED or PAUSING to PAUSED: the subject stays taken, without an expiry; the slot is free.

    The fence rises. Closes: a beat that arrives late and gives the lease an expiry again, a resume
    whose reply was lost undoing a later pause.
    """
    after = job.model_copy(
        update={
            "state": State.PAUSED,
            "fence": job.fence + 1,
            "attempt": max(0, job.attempt - _gives_back(job)),
            "has_slot": False,
            "worker": None,
            "receipt": None,
            "retry_at": None,
            "waiting_reason": None,
        }
    )
    changed = ("fence", "attempt", "has_slot")
    writes: dict[str, Write] = {
        LEASE: Update(
            items.lease_key(job.tenant, job.subject),
            set={"fence": after.fence},
            remove=("expires_at", *items.NOT_DUE),
            when=(*mine(job), *expiry_as_read(expired)),
        ),
        JOB: move(
            job,
            State.PAUSED,
            set_={name: getattr(after, name) for name in changed},
            remove=("worker", "receipt", "retry_at", "waiting_reason", *items.NOT_HELD),
            when=as_read(job),
        ),
    }
    return Transaction("pause", writes | leave_slot(job)), after


def _gives_back(job: Job) -> int:
    return 1 if job.state is State.PAUSING else 0


@dataclass(frozen=True)
class LettingGo:
    """How an attempt ends before its job does."""

    give_back: bool
    """The attempt does not count."""
    retry_at: int | None = None
    """Not before (ms)."""
    retries: int | None = None
    """How often it let go for a dependency without progress; None leaves the count."""
    fresh_message: bool = False
    """Go on with a new message instead of this delivery's."""
    lane: Lane | None = None
    """Promote to another lane (implies fresh_message)."""


def let_go(world: World, job: Job, how: LettingGo) -> tuple[Transaction, Job]:
    """RUNNING to QUEUED: the attempt ends, the subject stays taken without an expiry.

    The fence rises. Closes: letting go of what was taken over or cancelled meanwhile, a beat that
    arrives late and gives the lease an expiry again.
    """
    now = world.runtime.now()
    after = job.model_copy(
        update={
            "state": State.QUEUED,
            "fence": job.fence + 1,
            "attempt": job.attempt - 1 if how.give_back else job.attempt,
            "lane": how.lane or job.lane,
            "dispatches": job.dispatches + (1 if how.fresh_message or how.lane else 0),
            "retry_at": how.retry_at,
            "retries": job.retries if how.retries is None else how.retries,
            "waiting_reason": Waiting.RETRY if how.retry_at else None,
            "worker": None,
        }
    )
    wake = max(now, how.retry_at or 0) + ms(world.timing.lost_after)
    changed = ("fence", "attempt", "lane", "dispatches", "retry_at", "retries", "waiting_reason")
    writes: dict[str, Write] = {
        LEASE: Update(
            items.lease_key(job.tenant, job.subject),
            set={
                "fence": after.fence,
                **items.due(items.LEASE, job.id, wake, world.due_shards),
            },
            remove=("expires_at",),
            when=mine(job),
        ),
        JOB: move(
            job,
            State.QUEUED,
            set_=items.stored({name: getattr(after, name) for name in changed}),
            remove=("worker",),
            when=as_read(job),
        ),
    }
    if after.dispatches > job.dispatches:
        writes[DISPATCH] = dispatch(world, after)
    if after.lane is not job.lane:
        writes["slots left"] = Update(items.slots_key(job.tenant, job.lane), add={"in_flight": -1})
        writes["slots taken"] = Update(
            items.slots_key(job.tenant, after.lane), add={"in_flight": 1}
        )
    return Transaction("let_go", writes), after


def ask(job: Job, state: State) -> Transaction:
    """RUNNING to CANCELLING or PAUSING; the worker sees it at its next chunk boundary."""
    return Transaction("ask_" + state.value.lower(), {JOB: move(job, state, when=as_read(job))})
