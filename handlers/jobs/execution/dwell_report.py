"""What a process of the small lane tells the bulk lane's governors: how long its jobs waited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage.small_dwell import write_dwell
from ..words.errors import OutcomeUnknown, Refused, Transient
from ..words.timing import MINUTE, SECOND

if TYPE_CHECKING:
    from ..words.ports import World

EVERY: Final = 1 * SECOND
"""ms between two samples of a process."""
SPAN: Final = 30 * MINUTE
"""How long (ms) quiet times are remembered, at the least; at the most, twice as long."""
QUIET_SHARE: Final = 5
"""Of so many samples, one is below the quiet dwell."""


class DwellReport:
    """Gathers the dwells of one process and leaves a sample now and then, after a job's work: its
    own job does not wait for it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = int(world.runtime.token()[:4], 16)
        self._waited: list[int] = []
        self._written_at = 0
        self._span_began = world.runtime.now()
        self._samples: list[int] = []
        self._quiet_before: int | None = None
        self._first = True

    def started(self, dwell_ms: int) -> None:
        """A job of the small lane started for the first time. A process's first one is left out: it
        waited for the process itself, which says nothing about the database."""
        if self._first:
            self._first = False
            return
        self._waited.append(dwell_ms)

    def leave(self) -> None:
        """Leave a sample if one is due. Never raises."""
        now = self._world.runtime.now()
        if not self._waited or now - self._written_at < EVERY:
            return
        waited, self._waited, self._written_at = self._waited, [], now
        dwell = sorted(waited)[len(waited) // 2]
        try:
            quiet = self._quiet(now, dwell)
            write_dwell(self._world, self._number, dwell_ms=dwell, quiet_ms=quiet)
        except (Transient, OutcomeUnknown, Refused) as error:
            self._world.telemetry.log("dwell_not_left", why=str(error))

    def _quiet(self, now: int, dwell: int) -> int:
        """The quiet dwell, with this sample."""
        if now - self._span_began >= SPAN:
            self._quiet_before = quiet_of(self._samples) if self._samples else None
            self._samples, self._span_began = [], now
        self._samples.append(dwell)
        quiet = quiet_of(self._samples)
        return quiet if self._quiet_before is None else min(quiet, self._quiet_before)


def quiet_of(samples: list[int]) -> int:
    """The dwell (ms) in the quietest part of these samples; at least one."""
    return sorted(samples)[len(samples) // QUIET_SHARE]
