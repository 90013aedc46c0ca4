"""Part 5: a place that answers 429 for a while is left alone by every job, and nobody else waits.

Counted are the requests that the place refused, of two workers with jobs of their own, and what a
job without that place has done meanwhile. The control is the same place without a Retry-After.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow
from scripts.verify.framework import Bench, Expectation, Seen
from scripts.verify.outside import Receiver, Reply, serving
from scripts.verify.slow_place import SECRET

from .town import ADD_SLOWLY, Town, town

USERS: Final = ("one", "two")
OTHER: Final = "three"
RECOVERY: Final = "RecoveryFunction"
"""Part of the name of the function that sends what workers leave."""
RECORDS: Final = 3000
"""Of a job that the place has to hear of. Its operation is slow: it works for longer than the place
is busy."""
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

    @property
    def over(self) -> bool:
        """It refuses nothing any more."""
        return self.since is not None and time.monotonic() - self.since >= BUSY_S

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
    with _working(bench, "busy-place", place) as (here, told):
        others = here.load(OTHER, OTHERS)
        without = here.submit(OTHER, others, operation="reindex", params={})
        [other] = here.ended([without])
        rows = _ended(here, told)
    yield left_alone(place)
    yield Expectation.equal(
        "part 5: a job without that place, while the place was busy",
        expected=f"{State.SUCCEEDED.value}, all {OTHERS} records",
        saw=f"{other.state.value}, all {other.succeeded} records",
    )
    yield Expectation.equal(
        "part 5: the jobs that the place has to hear of, in the end",
        expected=[State.SUCCEEDED.value] * len(USERS),
        saw=[each.state.value for each in rows],
    )


def control(bench: Bench) -> Iterator[Seen]:
    """The place says 429, but not for how long: each job goes on asking."""
    place = BusyPlace()
    with _working(bench, "busy-unasked", place) as (here, told):
        here.until("the place is busy", told, lambda _: place.over)
        here.cancel()
        _ended(here, told)
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


def _ended(here: Town, told: list[str]) -> list[JobRow]:
    """The jobs once they have ended. What is left to send then is recovery's, which would come once
    a minute."""

    def ended(rows: Sequence[JobRow]) -> bool:
        if settling := any(row.state is State.SETTLING for row in rows):
            here.call(RECOVERY)
        return not settling and all(row.state.terminal for row in rows)

    return here.until("jobs end", told, ended)


@contextmanager
def _working(bench: Bench, part: str, place: BusyPlace) -> Iterator[tuple[Town, list[str]]]:
    """Workers and recovery tell the place of the jobs with these ids, and it refuses."""
    here = town(bench, part)
    with serving(place):
        settings = _settings(place)
        with here.told(RECOVERY, settings), here.working(settings, WORKERS):
            ids = {tenant: here.load(tenant, RECORDS) for tenant in USERS}
            told = [here.submit(tenant, ids[tenant], **ADD_SLOWLY) for tenant in USERS]
            here.until("the place refuses", told, lambda _: bool(place.refused))
            yield here, told


def _settings(place: BusyPlace) -> dict[str, object]:
    return {
        "bulk_slots": 1,
        "limits_chunk_size": CHUNK,
        "timing_effect_grace": 2,
        "timing_effect_retry_base": 0.5,
        "timing_effect_retry_cap": 2,
        "effects_webhook_url": f"{place.url}/told",
        "effects_webhook_secret": SECRET,
        "effects_webhook_loopback": True,
    }
