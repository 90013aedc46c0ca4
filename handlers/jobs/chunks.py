"""The chunk loop: read, plan, commit records and checkpoint together, again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from . import effects, transactions
from .errors import OwnershipLost, Transient, Why
from .limits import MAX_CHUNK
from .measures import Measure
from .model import Fail, Skip
from .outcomes import Stop
from .planning import Plan, Work, outcome_row, plan, tally
from .reading import read_job
from .settle import Rejected, carry_out, insist, pause
from .states import State
from .timing import SECOND
from .transactions import JOB, LEASE, record_role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .effects import Effect
    from .model import Job
    from .ports import World
    from .sources import Entry, Source
    from .store import Item

MAX_REPLANS: Final = 3
"""How often a record that somebody else keeps changing is planned again before it is failed."""


@dataclass(frozen=True)
class Walked:
    """Where a walk ended; ``stop`` is None when every record is settled."""

    job: Job
    stop: Stop | None


class Stopped(Exception):
    """The commit was refused because the job was asked to stop."""

    def __init__(self, job: Job, stop: Stop) -> None:
        super().__init__(stop)
        self.walked = Walked(job, stop)


@dataclass(frozen=True)
class Walker:
    """Walks one attempt of a job."""

    world: World
    work: Work
    source: Source
    should_stop: Callable[[Job], Stop | None]
    committed: Callable[[Effect], None] = lambda _effect: None
    """Told of each effect whose chunk has committed."""

    def walk(self, job: Job) -> Walked:
        """Commit chunk after chunk until the end or a reason to stop.

        Raises OwnershipLost, Transient (a dependency keeps failing), JobFailed.
        """
        size = min(self.world.limits.chunk_size, MAX_CHUNK)
        while True:
            if stop := self.should_stop(job):
                return Walked(job, stop)
            entries = insist(self.world, partial(self.source.after, job.cursor, size))
            if not entries:
                return Walked(job, None)
            started = self.world.runtime.now()
            before = job
            try:
                job = self._settle(job, entries, self._plan(job, entries))
            except Stopped as stopped:
                return stopped.walked
            self._measure(before, job, started)

    def _plan(self, job: Job, entries: Sequence[Entry]) -> dict[str, Plan]:
        ids = list(dict.fromkeys(entry.id for entry in entries))
        return insist(self.world, lambda: plan(self.world, job, self.work, ids))

    def _settle(self, job: Job, entries: Sequence[Entry], plans: dict[str, Plan]) -> Job:
        """Commit the entries, in pieces if the store will not take them at once."""
        replans = 0
        while True:
            try:
                return self._commit(job, entries, plans)
            except Rejected as rejected:
                if LEASE in rejected.reasons:
                    raise OwnershipLost from rejected
                if JOB in rejected.reasons:
                    moved = self._moved(job)
                    if moved.position > job.position:
                        return moved
                    pause(self.world, replans)
                    continue
                if (bad := self._unwritable(rejected, entries, plans)) is not None:
                    plans |= {each.id: each for each in bad}
                elif any(reason.why is Why.INVALID for reason in rejected.reasons.values()):
                    return self._split(job, entries, plans)
                else:
                    replans += 1
                    plans |= self._replan(job, rejected, entries, plans, replans)

    def _commit(self, job: Job, entries: Sequence[Entry], plans: dict[str, Plan]) -> Job:
        settled = _first_of_each(entries, plans)
        counts = tally(settled)
        after = job.model_copy(
            update={
                "position": job.position + len(entries),
                "cursor": entries[-1].cursor,
                "succeeded": job.succeeded + counts.succeeded,
                "failed": job.failed + counts.failed,
                "skipped": job.skipped + counts.skipped,
            }
        )
        effect = effects.effect_of(self.world, job, settled)
        transaction = transactions.commit_chunk(
            job,
            position=after.position,
            cursor=after.cursor,
            counts=counts,
            records=[p.write for p in settled if p.write is not None],
            outcomes=self._outcomes(settled),
            effect=effects.row(self.world, effect) if effect else None,
        )
        carry_out(self.world, transaction, applied=lambda: self._is_at(after))
        if effect:
            self.committed(effect)
        return after

    def _outcomes(self, settled: Sequence[Plan]) -> Item | None:
        """Kept as long as the job can be read, which is counted from its end."""
        row = outcome_row(settled)
        expires = self.world.runtime.now() // SECOND + 2 * self.world.timing.history
        return {**row, "expires_at_seconds": expires} if row else None

    def _is_at(self, after: Job) -> bool:
        job = read_job(self.world, after.id)
        return job is not None and job.fence == after.fence and job.position >= after.position

    def _moved(self, job: Job) -> Job:
        """The job as it is now, if it is still this attempt's to run."""
        now = insist(self.world, lambda: read_job(self.world, job.id))
        if now is None or now.fence != job.fence:
            raise OwnershipLost
        if now.state is State.CANCELLING:
            raise Stopped(now, Stop.CANCELLED)
        if now.state is State.PAUSING:
            raise Stopped(now, Stop.PAUSED)
        if now.state is not State.RUNNING:
            raise OwnershipLost
        return now

    def _unwritable(
        self, rejected: Rejected, entries: Sequence[Entry], plans: dict[str, Plan]
    ) -> list[Plan] | None:
        """The records that can never be written, failed; None when they can't be told apart."""
        writing = _writing(entries, plans)
        bad = [
            Plan(each.id, Fail(f"cannot be written: {reason.message or 'refused by the store'}"))
            for index, each in enumerate(writing)
            if (reason := rejected.reasons.get(record_role(index))) and reason.why is Why.INVALID
        ]
        if bad and (len(bad) < len(writing) or len(writing) == 1):
            return bad
        return None

    def _split(self, job: Job, entries: Sequence[Entry], plans: dict[str, Plan]) -> Job:
        if len(entries) == 1:
            # Not the record's write, so trying again is all that is left.
            raise Transient("the store refuses the checkpoint")
        half = len(entries) // 2
        job = self._settle(job, entries[:half], plans)
        return self._settle(job, entries[half:], plans)

    def _replan(
        self,
        job: Job,
        rejected: Rejected,
        entries: Sequence[Entry],
        plans: dict[str, Plan],
        replans: int,
    ) -> dict[str, Plan]:
        """New plans for the records that somebody else changed since they were read."""
        writing = _writing(entries, plans)
        ids = [p.id for i, p in enumerate(writing) if record_role(i) in rejected.reasons]
        if not ids:
            raise Transient(str(rejected)) from rejected
        if replans > MAX_REPLANS:
            return {id_: Plan(id_, Fail("changed by somebody else too often")) for id_ in ids}
        return insist(self.world, lambda: plan(self.world, job, self.work, ids))

    def _measure(self, before: Job, after: Job, started: int) -> None:
        telemetry, lane, operation = self.world.telemetry, after.lane, after.operation
        taken = self.world.runtime.now() - started
        telemetry.duration(Measure.CHUNK_TIME, taken, lane=lane, operation=operation)
        count = after.position - before.position
        telemetry.count(Measure.ITEMS, count, lane=lane, operation=operation)


def _first_of_each(entries: Sequence[Entry], plans: dict[str, Plan]) -> list[Plan]:
    """One plan per entry; an id that comes twice in a chunk is changed once."""
    seen: set[str] = set()
    settled = []
    for entry in entries:
        settled.append(_repeated(entry.id) if entry.id in seen else plans[entry.id])
        seen.add(entry.id)
    return settled


def _repeated(id_: str) -> Plan:
    return Plan(id_, Skip("already changed by this job"))


def _writing(entries: Sequence[Entry], plans: dict[str, Plan]) -> list[Plan]:
    return [p for p in _first_of_each(entries, plans) if p.write is not None]
