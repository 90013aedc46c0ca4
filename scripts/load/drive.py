"""Submitting a load to a local stack, and seeing it through."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Final

from fairlane_client import ApiProblem, Client, NewJob
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.local.errors import LocalError
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps

from .ledger import JobRow, Ledger
from .patience import STALLED_S, Patience
from .plan import Load, Planned
from .truth import Ran

LOOK_S: Final = 0.5
"""Between two looks at the tables: each look costs the local AWS some of its time."""
LINE_S: Final = 2.0
"""Between two looks at the line of bulk jobs while small jobs are measured."""


class LoadFailed(LocalError):
    """The load could not be put on the stack, so nothing was measured."""


@dataclass(frozen=True)
class Duplicate:
    """A second job asked for on a subject that a job has."""

    holder: str
    """The id of the job that has it."""
    holder_state: State
    """After the answer had come."""
    status: int
    """HTTP status; 202 when it was taken."""
    code: str
    named: str | None
    """The id the answer named."""
    seconds: float
    new_jobs: int
    small_messages: int
    dispatches: int
    """What there was more of afterwards."""


@dataclass(frozen=True)
class Run:
    """What came of a load."""

    bulk: tuple[Ran, ...]
    small: tuple[Ran, ...]
    idle: tuple[Ran, ...] = ()
    """Small jobs that came before the bulk jobs."""

    @property
    def all(self) -> tuple[Ran, ...]:
        return (*self.idle, *self.bulk, *self.small)

    @property
    def window(self) -> tuple[int, int]:
        """From the first small job's creation to the last one's start (ms)."""
        rows = [ran.row for ran in self.small]
        return (
            min(row.created_at for row in rows),
            max(row.started_at or row.created_at for row in rows),
        )


class Driver:
    """Puts one load on one stack. Every method raises LoadFailed when nothing moves any more."""

    def __init__(self, stack: LocalStack, load: Load, steps: Steps) -> None:
        self.ledger = Ledger(stack)
        self._load = load
        self._step = steps.step
        self._idle: list[tuple[Planned, str]] = []
        self._bulk: list[tuple[Planned, str]] = []
        self._small: list[tuple[Planned, str]] = []
        self._spare = load.spare()
        self._line_at = 0.0
        self._begun_before = 0
        self._client: Callable[[str], Client] = cache(
            lambda tenant: Client(stack.api.url, stack.issuer.token(tenant))
        )

    def submit_idle(self) -> None:
        """Submit the small jobs that come before any bulk work, and see them to their end."""
        with self._step("Submitting small jobs to idle lanes", len(self._load.idle)) as advance:
            self._idle = list(self._paced(self._load.idle, self._load.pace, advance))
        self._await("Waiting for them", [job_id for _, job_id in self._idle])

    def fill(self) -> None:
        """Submit the bulk jobs and wait until every bulk slot works."""
        bulk = self._load.bulk
        with self._step("Submitting bulk jobs", len(bulk)) as advance:
            for planned in bulk:
                self._bulk.append((planned, self._submit(planned)))
                advance(1)
        slots = self.ledger.bulk_slots
        with self._step("Waiting until every bulk slot works"):
            self._until(lambda jobs: self._begun(jobs) >= slots)

    def submit_small(self) -> None:
        """One after another. Bulk jobs stand in line all the while: where they are worked through
        faster than the small jobs come, more are submitted."""
        with self._step("Submitting small jobs beside them", len(self._load.small)) as advance:
            for submitted in self._paced(self._load.small, self._pace(), advance):
                self._small.append(submitted)
                self._keep_a_line()

    def await_small(self) -> None:
        """Wait until every small job has ended."""
        self._await("Waiting for small jobs", [job_id for _, job_id in self._small])

    def drain(self) -> frozenset[str]:
        """Cancel the bulk jobs that no worker has begun, and let the others run to their end.
        Returns the ids of those that were asked to end. A worker may begin one at that moment: it
        ends in the middle, or has done all."""
        with self._step("Cancelling bulk jobs that still wait"):
            cancelled = self._cancel_waiting()
        self._await("Waiting for those that were begun", [job_id for _, job_id in self._bulk])
        return cancelled

    def submit_duplicate(self) -> Duplicate:
        """Ask for a second, small job on the subject of an unfinished bulk job."""
        with self._step("Submitting a duplicate"):
            # The small jobs' last messages may still be on their way out.
            self._until(lambda _: not self.ledger.messages(Lane.SMALL))
            before = self.ledger.jobs()
            planned, holder = self._holding(before)
            request = planned.request.model_copy(update={"ids": planned.ids[:1]})
            status, code, named, seconds = self._try(planned.tenant, request)
            after = self.ledger.jobs()
            return Duplicate(
                holder=holder,
                holder_state=after[holder].state,
                status=status,
                code=code,
                named=named,
                seconds=round(seconds, 3),
                new_jobs=len(after.keys() - before.keys()),
                small_messages=self.ledger.messages(Lane.SMALL),
                dispatches=len(self.ledger.undispatched() - before.keys()),
            )

    def run(self) -> Run:
        """What became of the jobs up to now."""
        rows = self.ledger.jobs()
        idle, bulk, small = (
            tuple(Ran(planned, rows[job_id]) for planned, job_id in jobs)
            for jobs in (self._idle, self._bulk, self._small)
        )
        return Run(bulk=bulk, small=small, idle=idle)

    # --- inside ------------------------------------------------------------------------------

    def _paced(
        self, jobs: Sequence[Planned], pace: float, advance: Callable[[int], None]
    ) -> Iterator[tuple[Planned, str]]:
        start = time.monotonic()
        for number, planned in enumerate(jobs):
            time.sleep(max(0.0, start + number * pace - time.monotonic()))
            yield planned, self._submit(planned)
            advance(1)

    def _pace(self) -> float:
        """The load's, or a faster one where the bulk jobs are worked through so soon that in one
        queue, before the slots of both lanes, the last small jobs would not meet any."""
        rows = self.ledger.jobs()
        begun = [at for _, job_id in self._bulk if (at := rows[job_id].started_at) is not None]
        done = sum(rows[job_id].position for _, job_id in self._bulk)
        if not done:
            return self._load.pace
        left = sum(len(planned.ids) for planned, _ in self._bulk) - done
        seconds = time.time() - min(begun) / 1000
        bulk, small = self._slots
        in_one_queue = left * seconds / done * bulk / (bulk + small)
        return min(self._load.pace, in_one_queue / len(self._load.small))

    def _keep_a_line(self) -> None:
        """At least as many bulk jobs as the slots can begin until the next look, twice over."""
        if time.monotonic() < self._line_at:
            return
        jobs = self.ledger.jobs()
        begun, (bulk, _) = self._begun(jobs), self._slots
        wanted = 2 * max(bulk, begun - self._begun_before)
        line = sum(jobs[job_id].in_line for _, job_id in self._bulk)
        for planned in islice(self._spare, max(0, wanted - line)):
            self._bulk.append((planned, self._submit(planned)))
        self._begun_before = begun
        self._line_at = time.monotonic() + LINE_S

    @cached_property
    def _slots(self) -> tuple[int, int]:
        """Of the bulk lane and of the small lane."""
        return self.ledger.bulk_slots, self.ledger.small_slots

    def _cancel_waiting(self) -> frozenset[str]:
        jobs = self.ledger.jobs()
        cancelled = set()
        for planned, job_id in self._bulk:
            if jobs[job_id].state is State.QUEUED:
                try:
                    self._client(planned.tenant).cancel(job_id)
                except ApiProblem as problem:
                    if problem.code != "not_possible":  # it has ended meanwhile
                        raise
                else:
                    cancelled.add(job_id)
        return frozenset(cancelled)

    def _submit(self, planned: Planned) -> str:
        return self._client(planned.tenant).submit(planned.request).id

    def _try(self, tenant: str, request: NewJob) -> tuple[int, str, str | None, float]:
        start = time.perf_counter()
        try:
            taken = self._client(tenant).submit(request)
        except ApiProblem as problem:
            seconds = time.perf_counter() - start
            return problem.status, problem.code, problem.active_job_id, seconds
        return 202, "accepted", taken.id, time.perf_counter() - start

    def _begun(self, jobs: Mapping[str, JobRow]) -> int:
        """Bulk jobs that a slot took. More of them wait, so a slot that ended one has the next."""
        return sum(jobs[job_id].started_at is not None for _, job_id in self._bulk)

    def _holding(self, jobs: Mapping[str, JobRow]) -> tuple[Planned, str]:
        """The bulk job that has its subject for the longest time still: the last one waiting."""
        active = [
            (planned, job_id)
            for planned, job_id in self._bulk
            if jobs[job_id].state in (State.QUEUED, State.RUNNING)
        ]
        if not active:
            raise LoadFailed("no bulk job was left that has a subject")
        return max(active, key=lambda job: (jobs[job[1]].state is State.QUEUED, job[1]))

    def _await(self, what: str, ids: Sequence[str]) -> None:
        """Wait until they have all ended."""
        with self._step(what, len(ids)) as advance:
            seen = 0

            def over(jobs: Mapping[str, JobRow]) -> bool:
                nonlocal seen
                now = sum(jobs[job_id].state.terminal for job_id in ids)
                advance(now - seen)
                seen = now
                return now == len(ids)

            self._until(over)

    def _until(self, holds: Callable[[Mapping[str, JobRow]], bool]) -> None:
        patience = Patience()
        while not holds(jobs := self.ledger.jobs()):
            if not patience.lasts({(row.id, row.state, row.position) for row in jobs.values()}):
                raise LoadFailed(
                    f"no job has moved for {STALLED_S} s. The workers' logs are in the stack's "
                    "folder while it is up (fairlane local status)"
                )
            time.sleep(LOOK_S)
