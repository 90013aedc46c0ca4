"""The transactions that move the checkpoint: a chunk, the id list, the end of a walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.job_update import job_update
from ..storage.transaction import Transaction, Transition, job_is
from ..words.states import State
from ..words.writes import Check, Equals, Missing, Put
from .conditions import EFFECT, JOB, LEASE, owns_lease

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..words.job import Job
    from ..words.ports import World
    from ..words.writes import Item, When, Write

COMMIT: Final = "commit_chunk"


def commit_chunk(
    world: World,
    job: Job,
    after: Job,
    *,
    records: Sequence[Write],
    outcomes: Mapping[str, Item],
    effect: Put | None = None,
) -> Transaction:
    """Change the records of one chunk and move the checkpoint past them, or do neither.

    after: the job with its checkpoint and counts moved on. outcomes: the row of each outcome of
    ``OUTCOME_ROWS`` that the chunk has; each stands for a record without a write, so the rows take
    no record's place among the 100 writes. Closes: a replaced worker writing late
    (lease), a chunk applied twice and a cancelled job that goes on (job), a record changed by
    another writer since it was read (record).
    """
    writes: dict[str, Write] = {
        LEASE: _lease_check(job),
        JOB: job_update(
            world,
            job,
            after,
            when=(Equals("state", State.RUNNING.value), Equals("position", job.position)),
            beside={"committed_fence": job.fence},
        ),
    }
    writes |= {record_role(index): write for index, write in enumerate(records)}
    for outcome, row in outcomes.items():
        key = control_table.outcome_key(job.id, outcome, job.position)
        writes[f"{outcome} records"] = Put(key, row)
    if effect is not None:
        writes[EFFECT] = effect
    committed = job_is(
        job.id, lambda now: now.fence == after.fence and now.position >= after.position
    )
    return Transaction(COMMIT, writes, committed)


def record_role(index: int) -> str:
    return f"record {index}"


def id_list_written(
    world: World, job: Job, *, payload: str, total: int, duplicates: int
) -> Transition:
    """The job's id list is complete; from here on the job walks that list.

    Closes: a replaced worker's list coming late (lease), two lists for one job (payload), a job
    that was cancelled or paused meanwhile (state).
    """
    after = job.model_copy(
        update={
            "payload": payload,
            "total": total,
            "duplicates": duplicates,
            # Writing the list says nothing about how long its records take.
            "worked_until": world.runtime.now(),
        }
    )
    update = job_update(world, job, after, when=(*_running(job), Missing("payload")))
    written = job_is(job.id, lambda now: now.payload == payload)
    writes: dict[str, Write] = {LEASE: _lease_check(job), JOB: update}
    return Transition(Transaction("list_written", writes, written), after)


def total_known(world: World, job: Job) -> Transition:
    """A walk of unknown length has come to its end.

    Closes: a replaced worker calling the end too early (lease, position).
    """
    after = job.model_copy(update={"total": job.position})
    when = (*_running(job), Equals("position", job.position))
    known = job_is(job.id, lambda now: now.total == job.position)
    writes: dict[str, Write] = {
        LEASE: _lease_check(job),
        JOB: job_update(world, job, after, when=when),
    }
    return Transition(Transaction("total_known", writes, known), after)


def _lease_check(job: Job) -> Check:
    return Check(control_table.lease_key(job.tenant, job.subject), when=owns_lease(job))


def _running(job: Job) -> When:
    return (Equals("state", State.RUNNING.value), Equals("fence", job.fence))
