"""The stack of the crash scenario, and the jobs under which things go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Final

from fairlane_client import Client
from scripts.load.ledger import JobRow, Ledger
from scripts.load.plan import FIELD, Planned
from scripts.load.truth import Ran
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack

from .site import Site

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
        """Submit a job on every region that has none, and look at it. Its subject has to be free
        at once."""
        self.look()
        before = self.count
        for region in regions():
            if region.name not in self._newest or self._ended(self._newest[region.name]):
                self._submit(region)
        if self.count > before:
            self.look()

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
