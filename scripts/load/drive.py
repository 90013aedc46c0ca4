"""Submitting a load to a local stack, and seeing it through."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from handlers.jobs.model import Lane
from handlers.jobs.states import State
from scripts.client import ApiProblem, Client, NewJob
from scripts.local.errors import LocalError
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps

from .ledger import JobRow, Ledger
from .plan import Load, Planned
from .truth import Ran

LOOK_S: Final = 0.5
"""Between two looks at the tables: each look costs the local AWS some of its time."""
FULL_WITHIN_S: Final = 60
SETTLED_WITHIN_S: Final = 10


class LoadFailed(LocalError):
    """The load could not be put on the stack, so nothing was measured."""


@dataclass(frozen=True)
class Duplicate:
    """A second job asked for on a subject that a job has."""

    holder: str
    """The id of the job that has it."""
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

    @property
    def all(self) -> tuple[Ran, ...]:
        return (*self.bulk, *self.small)

    @property
    def window(self) -> tuple[int, int]:
        """From the first small job's creation to the last one's start (ms)."""
        rows = [ran.row for ran in self.small]
        return (
            min(row.created_at for row in rows),
            max(row.started_at or row.created_at for row in rows),
        )


class Driver:
    """Puts one load on one stack. Every method raises LoadFailed when it takes for ever."""

    def __init__(self, stack: LocalStack, load: Load, steps: Steps) -> None:
        self.ledger = Ledger(stack)
        self._load = load
        self._step = steps.step
        self._bulk: list[tuple[Planned, str]] = []
        self._small: list[tuple[Planned, str]] = []
        self._client: Callable[[str], Client] = cache(
            lambda tenant: Client(stack.api.url, stack.issuer.token(tenant))
        )

    def fill(self) -> None:
        """Submit the bulk jobs and wait until every bulk slot works."""
        with self._step("Submitting bulk jobs", len(self._load.bulk)) as advance:
            for planned in self._load.bulk:
                self._bulk.append((planned, self._submit(planned)))
                advance(1)
        slots = self.ledger.bulk_slots
        with self._step("Waiting until every bulk slot works"):
            self._until(lambda jobs: self._begun(jobs) >= slots, FULL_WITHIN_S)

    def submit_small(self) -> None:
        """One after another, at the load's pace."""
        with self._step("Submitting small jobs", len(self._load.small)) as advance:
            start = time.monotonic()
            for number, planned in enumerate(self._load.small):
                time.sleep(max(0.0, start + number * self._load.pace - time.monotonic()))
                self._small.append((planned, self._submit(planned)))
                advance(1)

    def await_small(self, within: float) -> None:
        """Wait until every small job has ended."""
        ids = [job_id for _, job_id in self._small]
        self._await("Waiting for small jobs", ids, within)

    def await_bulk(self, within: float) -> None:
        """Wait until every bulk job has ended."""
        ids = [job_id for _, job_id in self._bulk]
        self._await("Waiting for bulk jobs", ids, within)

    def drain(self, until: float, then: float) -> int:
        """Let the bulk jobs run to their end. Those that no worker has begun at ``until`` (of the
        monotonic clock) are cancelled, and the others get ``then`` seconds more. Returns how many
        were cancelled."""
        try:
            self.await_bulk(max(0.0, until - time.monotonic()))
        except LoadFailed:
            cancelled = self._cancel_waiting()
            self.await_bulk(then)
            return cancelled
        return 0

    def submit_duplicate(self) -> Duplicate:
        """Ask for a second, small job on the subject of an unfinished bulk job."""
        with self._step("Submitting a duplicate"):
            # The small jobs' last messages may still be on their way out.
            self._until(lambda _: not self.ledger.messages(Lane.SMALL), SETTLED_WITHIN_S)
            before = self.ledger.jobs()
            planned, holder = self._holding(before)
            request = planned.request.model_copy(update={"ids": planned.ids[:1]})
            status, code, named, seconds = self._try(planned.tenant, request)
            return Duplicate(
                holder=holder,
                status=status,
                code=code,
                named=named,
                seconds=round(seconds, 3),
                new_jobs=len(self.ledger.jobs().keys() - before.keys()),
                small_messages=self.ledger.messages(Lane.SMALL),
                dispatches=len(self.ledger.undispatched() - before.keys()),
            )

    def run(self) -> Run:
        """What became of the jobs up to now."""
        rows = self.ledger.jobs()
        return Run(
            bulk=tuple(Ran(planned, rows[job_id]) for planned, job_id in self._bulk),
            small=tuple(Ran(planned, rows[job_id]) for planned, job_id in self._small),
        )

    # --- inside ------------------------------------------------------------------------------

    def _cancel_waiting(self) -> int:
        jobs = self.ledger.jobs()
        cancelled = 0
        for planned, job_id in self._bulk:
            if jobs[job_id].state is State.QUEUED:
                try:
                    after = self._client(planned.tenant).cancel(job_id)
                except ApiProblem as problem:
                    if problem.code != "not_possible":  # it has ended meanwhile
                        raise
                else:
                    cancelled += after.state is State.CANCELLED
        return cancelled

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

    def _await(self, what: str, ids: Sequence[str], within: float) -> None:
        with self._step(what, len(ids)) as advance:
            seen = 0

            def ended(jobs: Mapping[str, JobRow]) -> bool:
                nonlocal seen
                now = sum(jobs[job_id].state.terminal for job_id in ids)
                advance(now - seen)
                seen = now
                return now == len(ids)

            self._until(ended, within)

    def _until(self, holds: Callable[[Mapping[str, JobRow]], bool], within: float) -> None:
        deadline = time.monotonic() + within
        while not holds(self.ledger.jobs()):
            if time.monotonic() > deadline:
                raise LoadFailed(
                    f"the jobs did not get where they should within {within:g} s. The workers' "
                    "logs are in the stack's folder while it is up (fairlane local status)"
                )
            time.sleep(LOOK_S)
