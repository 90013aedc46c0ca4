"""Fairlane under the load of ``lanes``: through the API, on the functions and a worker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from secrets import token_hex

from fairlane_client import ApiProblem, Client, NewJob
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow, Ledger
from scripts.local.errors import LocalError
from scripts.local.stack import LocalStack

from .jobs import record_id
from .lanes import BULK_TENANTS, ITEMS, SMALL_TENANT, until
from .place import SLOTS


class FairlaneLanes:
    """``System``. Its clock for a small job is the job's own: from its admission to its start."""

    def __init__(self, stack: LocalStack, bulk_records: int) -> None:
        """bulk_records: of each bulk job."""
        self._bulk_ids = [record_id(number) for number in range(bulk_records)]
        self._ledger = Ledger(stack)
        self._small: list[str] = []
        self._bulk: dict[str, str] = {}
        """Job id -> its tenant."""

        @cache
        def client(tenant: str) -> Client:
            return Client(stack.api.url, stack.issuer.token(tenant))

        self._client = client

    def fill(self, jobs: int) -> None:
        for number in range(jobs):
            tenant = BULK_TENANTS[number % len(BULK_TENANTS)]
            self._bulk[self._submit(tenant, self._bulk_ids)] = tenant
        until("every bulk slot works", self.full)

    def small(self, number: int) -> None:
        ids = [record_id(number * ITEMS + each) for each in range(ITEMS)]
        self._small.append(self._submit(SMALL_TENANT, ids))

    def waits(self) -> Sequence[float]:
        until("every small job ends", lambda: self._ended(self._small))
        rows = self._rows(self._small)
        if any(row.state is not State.SUCCEEDED for row in rows):
            raise LocalError("a small job of the bench did not succeed")
        return [row.dwell_ms for row in rows if row.dwell_ms is not None]

    def full(self) -> bool:
        running = [row for row in self._rows(self._bulk) if row.state is State.RUNNING]
        return len(running) >= SLOTS

    def done(self) -> int:
        return sum(row.position for row in self._rows(self._bulk))

    def drain(self) -> None:
        for row in self._rows(self._bulk):
            if not row.state.terminal:
                self._cancel(row.id)
        until("every bulk job ends", lambda: self._ended(self._bulk))
        self._small.clear()
        self._bulk.clear()

    def _submit(self, tenant: str, ids: Sequence[str]) -> str:
        job = NewJob(
            operation="adjust_number",
            subject=token_hex(8),
            ids=ids,
            params={"field": "n", "add": 1},
        )
        return self._client(tenant).submit(job).id

    def _cancel(self, job_id: str) -> None:
        try:
            self._client(self._bulk[job_id]).cancel(job_id)
        except ApiProblem as problem:
            if problem.code != "not_possible":  # it has ended meanwhile
                raise

    def _ended(self, ids: Sequence[str] | dict[str, str]) -> bool:
        return all(row.state.terminal for row in self._rows(ids))

    def _rows(self, ids: Sequence[str] | dict[str, str]) -> list[JobRow]:
        if not ids:
            return []
        jobs = self._ledger.jobs()
        return [jobs[job_id] for job_id in ids]
