"""Counting what a tenant does in windows of time, over all processes.

A window has a row of its own, so nothing has to be reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..words.errors import Transient
from ..words.timing import SECOND
from ..words.writes import AnyOf, AtMost, Key, Missing, Update
from .control_table import safe
from .transaction import Rejected, Transaction, execute

if TYPE_CHECKING:
    from ..words.ports import World

COUNT: Final = "count"
ROW: Final = "row"
SAMPLE: Final = 8
"""Requests that one count stands for: each is counted with a chance of one in so many, which costs
a write for every eighth request and is right on average."""
REQUESTS: Final = "REQUESTS"
"""What the partition keys of counted requests begin with."""
REQUEST_WINDOW: Final = 10 * SECOND
"""ms"""


def count_in_window(
    world: World, kind: str, tenant: str, *, limit: int, window: int, by: int = 1
) -> int | None:
    """Count what the tenant does now; None when there is room for it. Else nothing is counted, and
    the time (ms) until the next window is returned. window: ms. Raises Transient.

    Closes: two processes that both take the last place.
    """
    now = world.runtime.now()
    begun = now - now % window
    room = (AnyOf((Missing(COUNT), AtMost(COUNT, limit - by))),)
    ends = {"expires_at_seconds": (begun + 2 * window) // SECOND + 3600}
    row = Update(
        Key(f"{kind}#{safe(tenant)}", f"{begun:013}"), add={COUNT: by}, set=ends, when=room
    )
    try:
        execute(world, Transaction(f"count_{kind.lower()}", {ROW: row}))
    except Rejected:
        return begun + window - now
    return None


class RequestRate:
    """The limit of each tenant's requests, as one process of the API sees it.

    per_second: requests, on average over ten seconds, of all processes together. A process that
    has met a full window refuses the tenant until its end without asking again.
    """

    def __init__(self, world: World, per_second: int) -> None:
        self._world = world
        self._limit = per_second * REQUEST_WINDOW // SECOND
        # Low limits are counted exactly: one sample must not fill a good part of them.
        self._sample = max(1, min(SAMPLE, self._limit // (4 * SAMPLE)))
        self._full: dict[str, int] = {}
        """The end (epoch ms) of the window that is full, by tenant."""

    def wait_ms(self, tenant: str) -> int | None:
        """The time until the tenant's requests are answered again; None: this one is. A table that
        cannot be asked refuses nobody."""
        now = self._world.runtime.now()
        if (end := self._full.get(tenant)) is not None:
            if now < end:
                return end - now
            del self._full[tenant]
        if self._world.runtime.random() * self._sample >= 1:
            return None
        try:
            wait = count_in_window(
                self._world,
                REQUESTS,
                tenant,
                limit=self._limit,
                window=REQUEST_WINDOW,
                by=self._sample,
            )
        except Transient as error:
            self._world.telemetry.log("request_not_counted", tenant=tenant, why=str(error))
            return None
        if wait is not None:
            self._full[tenant] = now + wait
        return wait
