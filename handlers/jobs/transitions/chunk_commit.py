"""The transactions that move the checkpoint: a chunk, the id list, the end of a walk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage import control_table
from ..storage.transaction import Transaction
from ..words.job import Job
from ..words.states import State
from ..words.writes import Check, Equals, Missing, Put, Update
from .conditions import EFFECT, JOB, LEASE, OUTCOMES, owns_lease

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..words.job import Counts, IdCursor
    from ..words.writes import Item, When, Write


def commit_chunk(
    job: Job,
    *,
    position: int,
    cursor: IdCursor,
    counts: Counts,
    records: Sequence[Write],
    outcomes: Item | None,
    effect: Put | None = None,
) -> Transaction:
    """Change the records of one chunk and move the checkpoint past them, or do neither.

    position, cursor: the checkpoint afterwards. Closes: a replaced worker writing late (lease), a
    chunk applied twice and a cancelled job that goes on (job), a record changed by somebody else
    since it was read (record).
    """
    writes: dict[str, Write] = {
        LEASE: Check(control_table.lease_key(job.tenant, job.subject), when=owns_lease(job)),
        JOB: Update(
            control_table.job_key(job.id),
            set={"position": position, "cursor": cursor, "committed_fence": job.fence},
            add={
                **{name: count for name, count in counts.model_dump().items() if count},
                **({"effects_open": 1} if effect else {}),
            },
            when=(Equals("state", State.RUNNING.value), Equals("position", job.position)),
        ),
    }
    writes |= {record_role(index): write for index, write in enumerate(records)}
    if outcomes is not None:
        writes[OUTCOMES] = Put(control_table.outcome_key(job.id, job.position), outcomes)
    if effect is not None:
        writes[EFFECT] = effect
    return Transaction("commit_chunk", writes)


def record_role(index: int) -> str:
    return f"record {index}"


def id_list_written(job: Job, *, payload: str, total: int, duplicates: int) -> Transaction:
    """The job's id list is complete; from here on it is what the job walks.

    Closes: a replaced worker's list coming late (lease), two lists for one job (payload), a job
    that was cancelled or paused meanwhile (state).
    """
    update = Update(
        control_table.job_key(job.id),
        set={"payload": payload, "total": total, "duplicates": duplicates},
        when=(*_running(job), Missing("payload")),
    )
    check = Check(control_table.lease_key(job.tenant, job.subject), when=owns_lease(job))
    return Transaction("list_written", {LEASE: check, JOB: update})


def total_known(job: Job) -> Transaction:
    """A walk whose length nobody knew has come to its end.

    Closes: a replaced worker calling the end too early (lease, position).
    """
    update = Update(
        control_table.job_key(job.id),
        set={"total": job.position},
        when=(*_running(job), Equals("position", job.position)),
    )
    check = Check(control_table.lease_key(job.tenant, job.subject), when=owns_lease(job))
    return Transaction("total_known", {LEASE: check, JOB: update})


def _running(job: Job) -> When:
    return (Equals("state", State.RUNNING.value), Equals("fence", job.fence))
