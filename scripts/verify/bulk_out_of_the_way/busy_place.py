"""Part 5: a place that answers 429 for a while is left alone by every job, and nobody else waits.

Counted are the requests that the place refused, of two workers with jobs of their own, and what a
job without that place has done meanwhile. The control is the same place without a Retry-After.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from secrets import token_hex
from typing import Final

from fairlane_client import NewJob
from handlers.jobs.words.states import State
from scripts.local.settings import Chosen
from scripts.verify.framework import Bench, Expectation, Seen
from scripts.verify.outside import Receiver, Reply, serving
from scripts.verify.slow_place import SECRET

from .town import Town

USERS: Final = ("one", "two")
OTHER: Final = "three"
RECORDS: Final = 6000
"""Of a job that the place has to hear of: it works for many seconds."""
OTHERS: Final = 2000
BUSY_S: Final = 20
ASKED_S: Final = 8
WORKERS: Final = 3
CHUNK: Final = 20
ROUNDS: Final = BUSY_S // ASKED_S + 1
"""How often the place can be asked again while it is busy."""
AT_ONCE: Final = 4
"""Requests of a round at the most: those of each worker and of recovery that were on their way, or
that a process made in the second for which it trusts what it read."""


@dataclass
class BusyPlace(Receiver):
    """Refuses everything for a while from its first request on."""

    retry_after: int | None = None
    since: float | None = None
    refused: list[float] = field(default_factory=list)
    """Seconds after the first request."""
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        with self._counting:
            now = time.monotonic()
            self.since = now if self.since is None else self.since
            busy = now - self.since < BUSY_S
            if busy:
                self.refused.append(now - self.since)
        if busy:
            return Reply(HTTPStatus.TOO_MANY_REQUESTS, "", b"", self.retry_after)
        return super().answer(method, path, headers, body)


def run(bench: Bench) -> Iterator[Seen]:
    place = BusyPlace(retry_after=ASKED_S)
    ended, other = _worked(bench, "busy-place", place)
    yield left_alone(place)
    yield Expectation.equal(
        "part 5: a job without that place, while the place was busy",
        expected=f"{State.SUCCEEDED.value}, all {OTHERS} records",
        saw=other,
    )
    yield ended


def control(bench: Bench) -> Iterator[Seen]:
    """The place says 429, but not for how long: each job goes on asking."""
    place = BusyPlace()
    _worked(bench, "busy-unasked", place)
    yield left_alone(place).contrary()


def left_alone(place: BusyPlace) -> Expectation:
    most = ROUNDS * AT_ONCE
    at = ", ".join(f"{second:.1f}" for second in place.refused[:12])
    return Expectation.of(
        f"part 5: requests that the place refused in {BUSY_S} s, of {len(USERS)} jobs",
        expected=f"1 to {most}",
        saw=f"{len(place.refused)} (after {at} s)",
        ok=1 <= len(place.refused) <= most,
    )


def _worked(bench: Bench, name: str, place: BusyPlace) -> tuple[Expectation, str]:
    """Run the jobs; returns what to say of those with the place, and how the other one ended."""
    with (
        serving(place),
        bench.stack(name, settings=_settings(place), workers=WORKERS, records=False) as stack,
    ):
        town = Town(stack)
        ids = {tenant: town.load(tenant, RECORDS) for tenant in USERS}
        others = town.load(OTHER, OTHERS)
        told = [town.submit(tenant, ids[tenant]) for tenant in USERS]
        town.until("the place refuses", lambda _: bool(place.refused))
        other = town.client(OTHER).submit(
            NewJob(operation="reindex", subject=token_hex(8), ids=others)
        )
        [row] = town.ended([other.id])
        others_end = f"{row.state.value}, all {row.succeeded} records"
        rows = town.ended(told)
    ended = Expectation.equal(
        "part 5: the jobs that the place has to hear of, in the end",
        expected=[State.SUCCEEDED.value] * len(USERS),
        saw=[each.state.value for each in rows],
    )
    return ended, others_end


def _settings(place: BusyPlace) -> Chosen:
    return {
        "bulk_lane": {"slots": 1},
        "limits": {"chunk_size": CHUNK},
        "timing": {"effect_grace": 2, "effect_retry_base": 0.5, "effect_retry_cap": 2},
        "effects": {
            "webhook_url": f"{place.url}/told",
            "webhook_secret": SECRET,
            "webhook_loopback": True,
        },
    }
