"""The chunk loop: read, plan, commit records and checkpoint together, repeat."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ..effects.run import effect_of_chunk, effect_row
from ..storage.transaction import Contended, Rejected, back_off, execute, retry_transient
from ..transitions.chunk_commit import commit_chunk, record_role, total_known
from ..transitions.conditions import JOB, LEASE
from ..words.errors import OwnershipLost, Transient, Why
from ..words.job import Waiting
from ..words.limits import MAX_CHUNK
from ..words.metrics import Metric
from ..words.operation import Fail, Plan, Skip
from ..words.pace import PacedBy
from .planning import Work, outcome_rows, plan, tally
from .prefetch import Chunk, Prefetch
from .rate_limiter import GaveUpWaiting
from .stopping import LoopEnd, StopReason, StopRequested, still_running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..selection.id_sources import Entry, Source
    from ..words.effect import Effect
    from ..words.job import IdCursor, Job
    from ..words.ports import World
    from ..words.writes import Item
    from .governor import Governor
    from .rate_limiter import RateLimiter

FULL_PERCENT: Final = 100
MAX_TRIES: Final = 500
"""How often one chunk is tried; a record that keeps changing is failed long before that."""
MAX_REPLANS: Final = 3
"""How often a record that another writer keeps changing is planned again before it is failed."""


@dataclass(frozen=True)
class ChunkLoop:
    """Works through the records of one attempt."""

    world: World
    work: Work
    source: Source
    should_stop: Callable[[Job], StopReason | None]
    committed: Callable[[Effect], None] = lambda _effect: None
    """Called with each effect whose chunk has committed."""
    moved: Callable[[], None] = lambda: None
    """Called when a page is read, and when a chunk has committed."""
    governor: Governor | None = None
    """What sets the pace; None: full pace."""
    limiter: RateLimiter | None = None
    """What keeps to the rate limits; None: there are none."""

    def walk(self, job: Job) -> LoopEnd:
        """Commit chunk after chunk until the end or a reason to stop.

        Raises OwnershipLost, Transient (a dependency keeps failing), JobFailed.
        """
        ahead = Prefetch(self.world, partial(self._read, job))
        try:
            return self._walk(job, ahead)
        except StopRequested as stopped:
            return stopped.loop_end
        finally:
            ahead.close()

    def _walk(self, job: Job, ahead: Prefetch) -> LoopEnd:
        cursor: IdCursor | None = None if job.walked_to_its_end else job.cursor
        if self.limiter is not None:
            self.limiter.look(self.world, job)
        while cursor is not None:
            if job.stop_when_hopeless and job.hopeless:
                return LoopEnd(job, StopReason.HOPELESS)
            if stop := self.should_stop(job):
                return LoopEnd(job, stop)
            started = self.world.runtime.now()
            chunk = ahead.take(cursor)
            entries = chunk.part.entries
            cursor = chunk.part.next
            if not entries:
                continue
            if stop := self._wait_for_rates(job, chunk):
                return LoopEnd(job, stop)
            before = job
            job = self._commit_in_pieces(job, entries, dict(chunk.plans))
            taken = self.world.runtime.now() - started - self._waited
            self._measure(before, job, taken)
            if self.governor is not None:
                self.governor.after_chunk(self.world, job, taken)
            if job.cursor != entries[-1].cursor:
                cursor = job.cursor
        return self._ended(job)

    def _read(self, job: Job, cursor: IdCursor) -> Chunk:
        """The next ids with the plans for their records. Raises Transient, JobFailed."""
        size = min(self.world.limits.chunk_size, MAX_CHUNK)
        if self.governor is not None:
            size = self.governor.chunk_size(size)
        if self.limiter is not None:
            size = self.limiter.chunk_size(size)
        part = retry_transient(self.world, partial(self.source.after, cursor, size))
        self.moved()
        ids = list(dict.fromkeys(entry.id for entry in part.entries))
        if not ids:
            return Chunk(part, {})
        return Chunk(
            part, retry_transient(self.world, lambda: plan(self.world, job, self.work, ids))
        )

    def _wait_for_rates(self, job: Job, chunk: Chunk) -> StopReason | None:
        """Wait until the chunk may be committed. Returns why the attempt has to stop first."""
        if self.limiter is None:
            return None
        self.limiter.look(self.world, job)
        seen: list[StopReason] = []

        def stopping() -> bool:
            if (stop := self.should_stop(job)) is not None:
                seen.append(stop)
            return bool(seen)

        try:
            self.limiter.wait(self.world, chunk.plans.values(), stopping)
        except GaveUpWaiting:
            return seen[-1]
        return None

    @property
    def _waited(self) -> int:
        """How long (ms) the chunk waited for rate limits."""
        return 0 if self.limiter is None else self.limiter.waited_ms

    def _ended(self, job: Job) -> LoopEnd:
        """The end of the walk. Writes the job's total if it was unknown until now."""
        if job.total is not None:
            return LoopEnd(job, None)

        transition = total_known(self.world, job)
        try:
            execute(self.world, transition.transaction)
        except Rejected as rejected:
            if LEASE not in rejected.reasons:
                try:
                    still_running(self.world, job)
                except StopRequested as stopped:
                    return stopped.loop_end
            raise OwnershipLost from rejected
        return LoopEnd(transition.after, None)

    def _commit_in_pieces(self, job: Job, entries: Sequence[Entry], plans: dict[str, Plan]) -> Job:
        """Commit the entries, in pieces if the store will not take them at once."""
        replanned: Counter[str] = Counter()
        for tries in range(MAX_TRIES):
            try:
                return self._commit(job, entries, plans)
            except Rejected as rejected:
                if _item_changed(rejected, LEASE):
                    raise OwnershipLost from rejected
                if _item_changed(rejected, JOB):
                    moved = still_running(self.world, job)
                    if moved.position > job.position:
                        return moved
                    back_off(self.world, tries)
                    continue
                if (bad := self._unwritable(rejected, entries, plans)) is not None:
                    plans |= {each.id: each for each in bad}
                elif any(reason.why is Why.INVALID for reason in rejected.reasons.values()):
                    return self._split(job, entries, plans)
                else:
                    plans |= self._replan(job, rejected, entries, plans, replanned)
            except Contended as contended:
                plans |= self._replan_hot(job, contended, entries, plans, replanned)
        raise Transient("the chunk's records changed during every try")

    def _commit(self, job: Job, entries: Sequence[Entry], plans: dict[str, Plan]) -> Job:
        planned = _first_of_each(entries, plans)
        counts = tally(planned)
        effect = effect_of_chunk(self.world, job, planned)
        after = job.model_copy(
            update={
                "position": job.position + len(entries),
                "cursor": entries[-1].cursor,
                "succeeded": job.succeeded + counts.succeeded,
                "failed": job.failed + counts.failed,
                "skipped": job.skipped + counts.skipped,
                "effects_open": job.effects_open + (1 if effect else 0),
                **job.worked(self.world.runtime.now()),
                **self._pace(),
                **self._waits_for_rates(job),
            }
        )
        transaction = commit_chunk(
            self.world,
            job,
            after,
            records=[p.write for p in planned if p.write is not None],
            outcomes=self._outcomes(planned),
            effect=effect_row(self.world, effect) if effect else None,
        )
        execute(self.world, transaction)
        self.moved()
        if effect:
            self.committed(effect)
        return after

    def _pace(self) -> Mapping[str, object]:
        """The job's fields that say at which pace its chunk was made."""
        if self.limiter is not None and self.limiter.holding:
            return {"pace": None, "paced_by": PacedBy.RATE_LIMIT}
        if self.governor is None or self.governor.percent >= FULL_PERCENT:
            return {"pace": None, "paced_by": None}
        return {"pace": self.governor.percent, "paced_by": self.governor.why}

    def _waits_for_rates(self, job: Job) -> Mapping[str, object]:
        """The job's fields that say since when rate limits hold it up."""
        told = job.waiting_reason is Waiting.RATE_LIMIT
        holds = self.limiter is not None and self.limiter.holding
        if holds and not told:
            now = self.world.runtime.now()
            return {"waiting_reason": Waiting.RATE_LIMIT, "waiting_since": now}
        if told and not holds:
            return {"waiting_reason": None, "waiting_since": None}
        return {}

    def _outcomes(self, planned: Sequence[Plan]) -> dict[str, Item]:
        """Kept as long as the job can be read, which is counted from its end."""
        expires = {"expires_at_seconds": self.world.timing.row_ends(self.world.runtime.now())}
        return {outcome: {**row, **expires} for outcome, row in outcome_rows(planned).items()}

    def _unwritable(
        self, rejected: Rejected, entries: Sequence[Entry], plans: dict[str, Plan]
    ) -> list[Plan] | None:
        """Failing plans for the records that can never be written; None when the store does not say
        which they are."""
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
            # The record's write is not to blame, so only a later try can help.
            raise Transient("the store refuses the checkpoint")
        half = len(entries) // 2
        job = self._commit_in_pieces(job, entries[:half], plans)
        return self._commit_in_pieces(job, entries[half:], plans)

    def _replan(
        self,
        job: Job,
        rejected: Rejected,
        entries: Sequence[Entry],
        plans: dict[str, Plan],
        replanned: Counter[str],
    ) -> dict[str, Plan]:
        """New plans for the records that another writer changed since they were read."""
        writing = _writing(entries, plans)
        ids = [p.id for i, p in enumerate(writing) if record_role(i) in rejected.reasons]
        if not ids:
            raise Transient(str(rejected)) from rejected
        return self._plan_again(
            job, ids, replanned, "another writer changed the record during every try"
        )

    def _replan_hot(
        self,
        job: Job,
        contended: Contended,
        entries: Sequence[Entry],
        plans: dict[str, Plan],
        replanned: Counter[str],
    ) -> dict[str, Plan]:
        """New plans for the few records that others use all the time: their neighbours must not
        wait for them for ever. Raises the contention when it is not that of single records."""
        writing = _writing(entries, plans)
        hot = [
            (p.id, reason.why)
            for i, p in enumerate(writing)
            if (reason := contended.reasons.get(record_role(i))) is not None
        ]
        throttled = sum(why is Why.THROTTLED for _, why in hot)
        if not hot or throttled * 2 > len(writing):
            raise contended
        ids = [id_ for id_, _ in hot]
        return self._plan_again(
            job, ids, replanned, "contended: other requests used the record during every try"
        )

    def _plan_again(
        self, job: Job, ids: Sequence[str], replanned: Counter[str], given_up: str
    ) -> dict[str, Plan]:
        """Plans from the records as they are now. Records that were planned too often fail for the
        reason ``given_up``."""
        replanned.update(ids)
        again = [id_ for id_ in ids if replanned[id_] <= MAX_REPLANS]
        failed = {i: Plan(i, Fail(given_up)) for i in ids if replanned[i] > MAX_REPLANS}
        if not again:
            return failed
        return failed | retry_transient(self.world, lambda: plan(self.world, job, self.work, again))

    def _measure(self, before: Job, after: Job, taken: int) -> None:
        telemetry, lane, operation = self.world.telemetry, after.lane, after.operation
        telemetry.duration(Metric.CHUNK_TIME, taken, lane=lane, operation=operation)
        count = after.position - before.position
        telemetry.count(Metric.ITEMS, count, lane=lane, operation=operation)


def _item_changed(rejected: Rejected, role: str) -> bool:
    """Whether the item of that role was not as this attempt left it. An invalid request objects to
    every write, which says nothing about a single item."""
    reason = rejected.reasons.get(role)
    return reason is not None and reason.why is not Why.INVALID


def _first_of_each(entries: Sequence[Entry], plans: dict[str, Plan]) -> list[Plan]:
    """One plan per entry; an id that comes twice in a chunk is changed once."""
    seen: set[str] = set()
    planned = []
    for entry in entries:
        planned.append(_repeated(entry.id) if entry.id in seen else plans[entry.id])
        seen.add(entry.id)
    return planned


def _repeated(id_: str) -> Plan:
    return Plan(id_, Skip("already changed by this job"))


def _writing(entries: Sequence[Entry], plans: dict[str, Plan]) -> list[Plan]:
    return [p for p in _first_of_each(entries, plans) if p.write is not None]
