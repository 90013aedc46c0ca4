"""What goes wrong in the crash scenario, when, and the jobs it goes wrong under.

Recovery's schedule is a minute, which is the whole scenario; so its rule is switched off, and the
scenario calls the deployed function itself, every few seconds like the other times of this stack.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Final

import psutil
from botocore.exceptions import ClientError

from scripts.client import Client
from scripts.load.ledger import JobRow, Ledger
from scripts.load.plan import FIELD, Planned
from scripts.load.truth import Ran
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack

from .site import Site, stand_still

CHUNK: Final = 2
SMALL: Final = 120
"""Records of the largest job of the small lane."""
STOP_TIMEOUT: Final = 20
FUNCTION_TIMEOUT: Final = 2
CHAOS: Final[Chosen] = {
    "timing": {
        # Attempts for many more deaths than a job meets in a year.
        "small": {
            "heartbeat": 1,
            "lease_ttl": 4,
            "visibility": 12,
            "max_attempts": 40,
            "max_receive_count": 80,
        },
        "bulk": {
            "heartbeat": 1,
            "lease_ttl": 4,
            "visibility": 6,
            "max_attempts": 40,
            "max_receive_count": 80,
        },
        "takeover_grace": 15,
        "clock_skew": 1,
        # Less than a large job of the small lane takes: some are promoted, some killed.
        "function_timeout": FUNCTION_TIMEOUT,
        "small_reserve": 0.1,
        "stop_timeout": STOP_TIMEOUT,
        "longest_chunk": 10,
        "dispatch_grace": 2,
        "lost_after": 15,
        "retry_base": 0.5,
        "retry_cap": 5,
    },
    "limits": {"small_max_items": SMALL, "chunk_size": CHUNK, "tenant_slots_bulk": 4},
    "small_lane": {"maximum_concurrency": 2},
    "bulk_lane": {"slots": 2, "poll_seconds": 1},
}
"""Many short chunks, so that whatever dies does so in the middle of something."""

STARTED: Final = "worker_started"
"""What a worker logs when it begins to serve."""
RECOVERY_S: Final = 2.0
LOOK_S: Final = 0.5
TENANTS: Final = ("ash", "birch", "cedar")


@dataclass(frozen=True)
class Region:
    """Records that one job after another changes, on the same subject."""

    tenant: str
    name: str
    ids: tuple[str, ...]
    least: int
    """Records of one job."""


def regions() -> list[Region]:
    """As many of each lane as jobs run at once."""
    return [
        *_regions("bulk", 5, 2 * SMALL, least=SMALL + 1),
        *_regions("small", 4, SMALL, least=SMALL // 5),
    ]


def _regions(kind: str, count: int, size: int, *, least: int) -> Iterator[Region]:
    for number in range(count):
        name = f"{kind}-{number}"
        ids = tuple(f"{name}-{at:03}" for at in range(size))
        yield Region(TENANTS[number % len(TENANTS)], name, ids, least)


@dataclass(frozen=True)
class Plan:
    """Seconds from the start."""

    kills: tuple[float, ...]
    stops: tuple[float, ...]
    freezes: tuple[float, ...]
    recovery_down: tuple[float, float]
    """From, to."""
    ends: float

    @classmethod
    def of(cls, seed: int, *, ends: float, kills: int, stops: int, freezes: int) -> Plan:
        chance = Random(seed)  # noqa: S311  repeatable is what it is for

        def moments(count: int) -> tuple[float, ...]:
            return tuple(sorted(chance.uniform(2, ends) for _ in range(count)))

        down = ends * 0.2, ends * 0.6
        return cls(moments(kills), moments(stops), moments(freezes), down, ends)


class Jobs:
    """A job on every region, and the next one as soon as it has ended."""

    def __init__(self, stack: LocalStack, chance: Random) -> None:
        self.ledger = Ledger(stack)
        self._chance = chance
        self._clients = {
            tenant: Client(stack.api.url, stack.issuer.token(tenant)) for tenant in TENANTS
        }
        self._sites = {tenant: Site(stack, tenant) for tenant in TENANTS}
        self._planned: dict[str, Planned] = {}
        self._newest: dict[str, str] = {}
        """Of each region, the id of its job."""
        self.rows: Mapping[str, JobRow] = {}

    def load(self) -> None:
        """Put the records of every region."""
        for region in regions():
            self._sites[region.tenant].put(region.ids, FIELD)

    def top_up(self) -> None:
        """Submit a job on every region that has none. Its subject has to be free at once."""
        self.look()
        for region in regions():
            if region.name not in self._newest or self._ended(self._newest[region.name]):
                self._submit(region)

    def look(self) -> None:
        self.rows = self.ledger.jobs()

    @property
    def ended(self) -> int:
        return sum(self._ended(job_id) for job_id in self._planned)

    @property
    def count(self) -> int:
        return len(self._planned)

    def ran(self) -> list[Ran]:
        return [Ran(planned, self.rows[job_id]) for job_id, planned in self._planned.items()]

    def _ended(self, job_id: str) -> bool:
        row = self.rows.get(job_id)
        return row is not None and row.state.terminal

    def _submit(self, region: Region) -> None:
        count = self._chance.randint(region.least, len(region.ids))
        start = self._chance.randint(0, len(region.ids) - count)
        ids = region.ids[start : start + count]
        planned = Planned(region.tenant, region.name, ids, Decimal(1))
        job_id = self._clients[region.tenant].submit(planned.request).id
        self._planned[job_id] = planned
        self._newest[region.name] = job_id


@dataclass
class Happened:
    """What went wrong, as far as it could be seen from outside."""

    killed: int = 0
    stopped: list[Process] = field(default_factory=list)
    exits: list[int | None] = field(default_factory=list)
    """Exit codes of the workers that were asked to stop; None: it had to be killed."""
    recoveries: int = 0
    refused: int = 0
    """Calls of recovery while it was down."""


class Storm:
    """Carries a plan out against a stack; ``tick`` is called again and again."""

    def __init__(self, stack: LocalStack, plan: Plan, chance: Random) -> None:
        self.happened = Happened()
        self._stack = stack
        self._plan = plan
        self._chance = chance
        self._todo = sorted(self._events(), key=lambda event: event[0])
        self._start = time.monotonic()
        self._recovery = _function(stack, "Recovery")
        self._small = _function(stack, "SmallLane")
        self._next_recovery = 0.0
        stand_still(stack)

    def tick(self) -> bool:
        """Do what is due; False when nothing more will go wrong."""
        now = time.monotonic() - self._start
        while self._todo and self._todo[0][0] <= now:
            self._todo.pop(0)[1]()
        if now >= self._next_recovery:
            self._recover()
            self._next_recovery = now + RECOVERY_S
        return bool(self._todo)

    def settle(self) -> None:
        """Wait for the workers that were asked to stop."""
        for process in self.happened.stopped:
            try:
                self.happened.exits.append(process.wait(STOP_TIMEOUT))
            except TimeoutError:
                process.kill()
                self.happened.exits.append(None)

    def _events(self) -> Iterator[tuple[float, Callable[[], None]]]:
        for at in self._plan.kills:
            yield at, self._kill
        for at in self._plan.stops:
            yield at, self._stop
        for at in self._plan.freezes:
            yield at, self._freeze
        down, up = self._plan.recovery_down
        yield down, self._recovery_down
        yield up, self._recovery_up
        yield self._plan.ends, lambda: None

    def _victim(self) -> Process:
        leaving = {process.pid for process in self.happened.stopped}
        staying = [w for w in self._stack.workers.running if w.pid not in leaving]
        # One that still starts has no job to lose.
        return self._chance.choice([w for w in staying if STARTED in w.log.read_text()] or staying)

    def _kill(self) -> None:
        self._victim().kill()
        self.happened.killed += 1
        self._stack.workers.start()

    def _stop(self) -> None:
        victim = self._victim()
        victim.terminate()
        self.happened.stopped.append(victim)
        self._stack.workers.start()

    def _freeze(self) -> None:
        """Let the small lane's functions hang, so that each is killed at the end of its time."""
        aws = self._stack.state.aws
        for child in psutil.Process(aws.pid).children(recursive=True) if aws else ():
            with suppress(psutil.Error):
                if child.environ().get("AWS_LAMBDA_FUNCTION_NAME") == self._small:
                    child.suspend()

    def _recovery_down(self) -> None:
        self._stack.clients.lambda_.put_function_concurrency(
            FunctionName=self._recovery, ReservedConcurrentExecutions=0
        )

    def _recovery_up(self) -> None:
        self._stack.clients.lambda_.delete_function_concurrency(FunctionName=self._recovery)

    def _recover(self) -> None:
        try:
            answer = self._stack.clients.lambda_.invoke(FunctionName=self._recovery, Payload=b"{}")
        except ClientError as error:
            if error.response["Error"]["Code"] != "TooManyRequestsException":
                raise
            self.happened.refused += 1
            return
        if answer.get("FunctionError"):
            raise LocalError(f"recovery failed: {answer['Payload'].read()!r}")
        self.happened.recoveries += 1


def _function(stack: LocalStack, prefix: str) -> str:
    """The name of the one deployed function whose logical id begins like this."""
    [name] = [
        resource.id
        for logical, resource in stack.deployed.resources.items()
        if resource.type == "AWS::Lambda::Function" and logical.startswith(prefix)
    ]
    return name


def timed_out(stack: LocalStack) -> int:
    """Invocations that the local AWS killed for taking too long."""
    log = (stack.folder.path / "ministack.log").read_text(errors="replace")
    return log.count(f"timed out after {FUNCTION_TIMEOUT}s")
