"""The stack with bulk work on it that the parts of this scenario use one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from fairlane_client import Client, NewJob
from handlers.jobs.words.ports import World
from handlers.jobs.words.states import State
from handlers.settings import PREFIX
from scripts.load.ledger import JobRow, Ledger
from scripts.load.patience import STALLED_S, Patience
from scripts.local import airports
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack
from scripts.ops.deployment import deployment
from scripts.verify import slow_operations
from scripts.verify.framework import Bench

FIELD: Final = "n"
LOOK_S: Final = 0.3
ADD_ONE: Final[Mapping[str, Any]] = {
    "operation": "adjust_number",
    "params": {"field": FIELD, "add": 1},
}
ADD_SLOWLY: Final[Mapping[str, Any]] = {"operation": "slow_number", "params": {"add": 1}}
SETTINGS: Final[Chosen] = {
    "limits": {"tenant_slots_bulk": 10},
    "operations": str(Path(slow_operations.__file__).parent),
}
"""What parts need otherwise, their workers and functions are told in variables."""


def variables(chosen: Mapping[str, object]) -> dict[str, str]:
    """The environment variables of these settings, named by their path: ``{"pace_on": False}``."""
    return {f"{PREFIX}{name}".upper(): str(value) for name, value in chosen.items()}


def town(bench: Bench, part: str) -> Town:
    """For a part, or its control: with tenants and jobs of its own."""
    # In a database that lets short requests overtake, bulk work does little harm to begin with.
    return Town(bench.shared("bulk-way", settings=SETTINGS, one_by_one=True), part)


@dataclass
class Town:
    """The stack, and a part's tenants, records and jobs on it."""

    stack: LocalStack
    part: str
    jobs: list[str] = field(default_factory=list)
    """Ids of the jobs that were submitted here, in that order."""
    _clients: dict[str, Client] = field(default_factory=dict)
    _tenants: dict[str, str] = field(default_factory=dict)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.stack)

    @cached_property
    def world(self) -> World:
        return deployment(None, self.stack.name).world

    def tenant(self, who: str) -> str:
        """No other part's."""
        return f"{who}-{self.part}"

    def client(self, who: str) -> Client:
        if who not in self._clients:
            tenant = self.tenant(who)
            self._clients[who] = Client(self.stack.api.url, lambda: self.stack.issuer.token(tenant))
        return self._clients[who]

    @contextmanager
    def working(self, over: Mapping[str, object], count: int = 1) -> Iterator[list[Process]]:
        """So many bulk workers, with these settings over the deployed ones, run during the block.
        All workers end with it."""
        started = self.stack.workers.start(count, env=variables(over))
        try:
            yield started
        finally:
            self.stack.workers.stop()

    @contextmanager
    def told(self, function: str, over: Mapping[str, object]) -> Iterator[None]:
        """The deployed function with this part in its name has these settings during the block."""
        lambda_, name = self.stack.clients.lambda_, self._function(function)
        known = lambda_.get_function_configuration(FunctionName=name)["Environment"]["Variables"]

        def tell(given: Mapping[str, str]) -> None:
            lambda_.update_function_configuration(
                FunctionName=name, Environment={"Variables": given}
            )

        tell({**known, **variables(over)})
        try:
            yield
        finally:
            tell(known)

    def call(self, function: str) -> None:
        """Invoke the deployed function with this part in its name."""
        self.stack.clients.lambda_.invoke(FunctionName=self._function(function), Payload=b"{}")

    def _function(self, part: str) -> str:
        functions = self.stack.clients.lambda_.list_functions()["Functions"]
        [name] = [each["FunctionName"] for each in functions if part in each["FunctionName"]]
        return name

    def load(self, who: str, count: int, **more: object) -> list[str]:
        """Records whose number is 0; returns their ids."""
        ids = [f"record-{number:05}" for number in range(count)]
        table = self.stack.deployed.outputs["RecordsTable"]
        some: dict[str, Any] = {id_: {FIELD: Decimal(0), **more} for id_ in ids}
        airports.load(self.stack.clients.dynamodb, table, tenants={self.tenant(who): some})
        return ids

    def submit(self, who: str, ids: Sequence[str] | None = None, **more: Any) -> str:
        """Submit a job on a subject of its own. It adds one to each record, or does what ``more``
        says."""
        made = self.client(who).submit(NewJob(subject=token_hex(8), ids=ids, **{**ADD_ONE, **more}))
        self.jobs.append(made.id)
        self._tenants[made.id] = who
        return made.id

    def line(self, ids: Mapping[str, Sequence[str]], left: int, **more: Any) -> list[str]:
        """The bulk jobs of these tenants that have not ended, ``left`` of each: as many more are
        submitted. ids: the records of each tenant's jobs."""
        open_ = [row for row in self.rows(self.jobs) if not row.state.terminal]
        self.jobs = [row.id for row in open_]
        for who in ids:
            mine = sum(row.tenant == self.tenant(who) for row in open_)
            for _ in range(left - mine):
                self.submit(who, ids[who], **more)
        return list(self.jobs)

    def rows(self, ids: Sequence[str]) -> list[JobRow]:
        return self.ledger.jobs_of(ids)

    def until(
        self, what: str, ids: Sequence[str], holds: Callable[[Sequence[JobRow]], bool]
    ) -> list[JobRow]:
        """The rows of these jobs once that holds of them. Raises LocalError when nothing moves any
        more."""
        patience = Patience()
        while not holds(rows := self.rows(ids)):
            if not patience.lasts({(row.id, row.state, row.position) for row in rows}):
                raise LocalError(f"{what}: no job has moved for {STALLED_S} s")
            time.sleep(LOOK_S)
        return rows

    def running(self, ids: Sequence[str], count: int) -> None:
        """Wait until so many of the jobs run."""
        self.until(f"{count} bulk jobs run", ids, lambda rows: count_running(rows) >= count)

    def ended(self, ids: Sequence[str]) -> list[JobRow]:
        """Wait until the jobs have ended."""
        return self.until("jobs end", ids, lambda rows: all(row.state.terminal for row in rows))

    def clear(self) -> None:
        """Cancel what has not ended, and wait for its end. Bulk workers have to run."""
        self.cancel()
        self.ended(self.jobs)
        self.jobs.clear()

    def cancel(self) -> None:
        """Cancel what has not ended."""
        for row in self.rows(self.jobs):
            if not row.state.terminal and row.state is not State.CANCELLING:
                try:
                    self.client(self._tenants[row.id]).cancel(row.id)
                except Exception:  # noqa: BLE001, S112  it has ended meanwhile, or is seen below
                    continue


def count_running(rows: Sequence[JobRow]) -> int:
    return sum(row.state is State.RUNNING for row in rows)
