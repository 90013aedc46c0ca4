"""The rate limits of one slot's jobs: it takes grants and makes the job wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..storage.rates import read_limits, take_grant
from ..words.errors import Transient
from ..words.rates import RateLimit, Unit
from ..words.timing import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..words.job import Job
    from ..words.operation import Plan
    from ..words.ports import Runtime, World

LOOK_EVERY: Final = 5 * SECOND
"""ms between two looks at the limits."""
NAP: Final = 100
"""ms between two questions whether to stop, while a job waits for a grant."""
KEPT: Final = 5 * SECOND
"""How long (ms) what is left of a grant can be used, also by the slot's next job."""
KB: Final = 1024
ITEM_OVERHEAD: Final = 100
"""Bytes of a stored record beside the fields an operation sees."""


class GaveUpWaiting(Exception):
    """The attempt has to stop before its grant begins."""


@dataclass
class _Left:
    """What a slot still has of a limit."""

    amount: int = 0
    start: int = 0


class RateLimiter:
    """Keeps one slot's jobs within the limits that its operator has set. Not for several
    threads, but the size of a chunk may be asked from any."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._limits: tuple[RateLimit, ...] = ()
        self._about: tuple[str, str] | None = None
        self._looked_at = 0
        self._left: dict[tuple[str, Unit], _Left] = {}
        self.waited_ms = 0
        """How long the last chunk waited."""
        self._waited_at = 0

    def chunk_size(self, most: int) -> int:
        """Records of the next chunk: at most a second's worth of each limit of records."""
        return min([most, *(each.rate for each in self._limits if each.unit is Unit.RECORDS)])

    @property
    def holding(self) -> bool:
        """Whether the limits held a chunk up of late."""
        return self._runtime.now() - self._waited_at < LOOK_EVERY

    def look(self, world: World, job: Job) -> None:
        """Read the limits of the job, if it is time; those known stay when they cannot be read."""
        about, now = (job.tenant, job.operation), self._runtime.now()
        if about == self._about and now - self._looked_at < LOOK_EVERY:
            return
        if about != self._about:
            self._limits = ()
        self._about, self._looked_at = about, now
        try:
            self._limits = read_limits(world, tenant=job.tenant, operation=job.operation)
        except Transient as error:
            world.telemetry.log("rates_not_read", job_id=job.id, why=str(error))

    def wait(self, world: World, plans: Iterable[Plan], stopping: Callable[[], bool]) -> None:
        """Return when a chunk may be committed. Raises GaveUpWaiting, Transient."""
        self.waited_ms = 0
        if not self._limits:
            return
        started = self._runtime.now()
        chunk = list(plans)
        for limit in self._limits:
            wanted = len(chunk) if limit.unit is Unit.RECORDS else sum(map(units_of, chunk))
            self._take(world, limit, wanted, stopping)
        self.waited_ms = self._runtime.now() - started
        if self.waited_ms:
            self._waited_at = self._runtime.now()

    def _take(
        self, world: World, limit: RateLimit, wanted: int, stopping: Callable[[], bool]
    ) -> None:
        left = self._left.setdefault((limit.scope, limit.unit), _Left())
        if self._runtime.now() - left.start > KEPT:
            left.amount = 0
        while left.amount < wanted:
            grant = take_grant(world, limit)
            if grant is None:
                self._nap(NAP + round(self._runtime.random() * NAP), stopping)
                continue
            left.amount += grant.amount
            left.start = grant.start
            while (ahead := grant.start - self._runtime.now()) > 0:
                self._nap(min(ahead, NAP), stopping)
        left.amount -= wanted

    def _nap(self, ms: int, stopping: Callable[[], bool]) -> None:
        if stopping():
            raise GaveUpWaiting
        self._runtime.sleep(ms)


def units_of(plan: Plan) -> int:
    """About how many write units the plan's write takes: two for each KB of the record."""
    if plan.write is None or plan.before is None:
        return 0
    size = ITEM_OVERHEAD + sum(
        len(name) + len(str(value)) for name, value in plan.before.fields.items()
    )
    return 2 * -(-size // KB)
