"""A stack with bulk work on it, as the parts of this scenario need it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from secrets import token_hex
from typing import Any, Final

from fairlane_client import Client, NewJob
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow, Ledger
from scripts.load.patience import STALLED_S, Patience
from scripts.local import airports
from scripts.local.errors import LocalError
from scripts.local.stack import LocalStack

FIELD: Final = "n"
LOOK_S: Final = 0.3
ADD_ONE: Final[Mapping[str, Any]] = {
    "operation": "adjust_number",
    "params": {"field": FIELD, "add": 1},
}


@dataclass
class Town:
    """One stack, its tenants' records and jobs."""

    stack: LocalStack
    jobs: list[str] = field(default_factory=list)
    """Ids of the jobs that were submitted here, in that order."""
    _tenants: dict[str, str] = field(default_factory=dict)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.stack)

    def client(self, tenant: str) -> Client:
        return Client(self.stack.api.url, self.stack.issuer.token(tenant))

    def load(self, tenant: str, count: int, **more: object) -> list[str]:
        """Records whose number is 0; returns their ids."""
        ids = [f"record-{number:05}" for number in range(count)]
        table = self.stack.deployed.outputs["RecordsTable"]
        some: dict[str, Any] = {id_: {FIELD: Decimal(0), **more} for id_ in ids}
        airports.load(self.stack.clients.dynamodb, table, tenants={tenant: some})
        return ids

    def submit(self, tenant: str, ids: Sequence[str] | None = None, **more: Any) -> str:
        """Submit a job on a subject of its own. It adds one to each record, or does what ``more``
        says."""
        made = self.client(tenant).submit(
            NewJob(subject=token_hex(8), ids=ids, **{**ADD_ONE, **more})
        )
        self.jobs.append(made.id)
        self._tenants[made.id] = tenant
        return made.id

    def rows(self, ids: Sequence[str]) -> list[JobRow]:
        rows = self.ledger.jobs()
        return [rows[id_] for id_ in ids]

    def until(self, what: str, holds: Callable[[Mapping[str, JobRow]], bool]) -> None:
        """Raises LocalError when nothing moves any more."""
        patience = Patience()
        while not holds(rows := self.ledger.jobs()):
            if not patience.lasts({(row.id, row.state, row.position) for row in rows.values()}):
                raise LocalError(f"{what}: no job has moved for {STALLED_S} s")
            time.sleep(LOOK_S)

    def running(self, ids: Sequence[str], count: int) -> None:
        """Wait until so many of the jobs run."""

        def enough(rows: Mapping[str, JobRow]) -> bool:
            return sum(rows[id_].state is State.RUNNING for id_ in ids) >= count

        self.until(f"{count} bulk jobs run", enough)

    def ended(self, ids: Sequence[str]) -> list[JobRow]:
        """Wait until the jobs have ended."""
        self.until("jobs end", lambda rows: all(rows[id_].state.terminal for id_ in ids))
        return self.rows(ids)

    def clear(self) -> None:
        """Cancel what has not ended, and wait for its end."""
        for row in self.rows(self.jobs):
            if not row.state.terminal and row.state is not State.CANCELLING:
                try:
                    self.client(self._tenants[row.id]).cancel(row.id)
                except Exception:  # noqa: BLE001, S112  it has ended meanwhile, or is seen below
                    continue
        self.ended(self.jobs)
        self.jobs.clear()
