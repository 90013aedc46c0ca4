"""The governor of one slot of a bulk worker: it measures, looks at the small lane, and decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..storage.small_dwell import read_dwells
from ..transitions.chunk_commit import COMMIT
from ..words.errors import Refused, Transient, Why
from ..words.metrics import Metric
from ..words.pace import PacedBy
from ..words.timing import MINUTE, SECOND
from .pace import (
    FULL,
    Baseline,
    CommitTry,
    chunk_size,
    next_pace,
    pause_ms,
    summary_of,
    trouble_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..words.job import Job
    from ..words.pace import PaceSettings, SmallDwell
    from ..words.ports import Runtime, Store, World
    from ..words.writes import Cursor, Index, Item, Key, Page, Write
    from .pace import Trouble

DECIDE_EVERY: Final = 1 * SECOND
LOOK_EVERY: Final = 2 * SECOND
"""ms between two looks at the small lane's samples."""
FRESH: Final = 10 * SECOND
"""How old (ms) a sample may be that says how the small lane is."""
HOLD: Final = 4 * SECOND
"""ms without a raise after a cut: the next samples have to show what it did."""
SPAN: Final = 5 * MINUTE
LOGGED: Final = 20
"""The change in percent points that is worth a line."""


class Governor:
    """Keeps one slot's pace over its jobs. One thread decides; others may read the pace."""

    def __init__(self, settings: PaceSettings, runtime: Runtime) -> None:
        self._settings = settings
        self._runtime = runtime
        self.pace = FULL
        self.why: PacedBy | None = None
        """The trouble of the last cut, until the pace is full again."""
        self._tries: list[CommitTry] = []
        self._baseline = Baseline()
        self._span_began = self._decided_at = self._looked_at = runtime.now()
        self._cut_at = 0
        self._logged = 100

    @property
    def percent(self) -> int:
        return round(self.pace * 100)

    def measured(self, world: World) -> World:
        """The world, with a store that tells the governor how each commit went."""
        return replace(world, store=MeasuredStore(world.store, self._runtime, self._saw))

    def chunk_size(self, most: int) -> int:
        return chunk_size(self.pace, most)

    def after_chunk(self, world: World, job: Job, chunk_ms: int) -> None:
        """Decide, if it is time, and pause as the pace says. chunk_ms: how long the chunk took."""
        now = self._runtime.now()
        if now - self._decided_at >= DECIDE_EVERY:
            self._decide(world, job, now)
        if pause := pause_ms(self.pace, chunk_ms):
            self._runtime.sleep(pause)

    def _saw(self, one: CommitTry) -> None:
        self._tries.append(one)

    def _decide(self, world: World, job: Job, now: int) -> None:
        tries, self._tries, self._decided_at = self._tries, [], now
        trouble = trouble_in(tries, self._baseline, self._small_lane(world, now), self._settings)
        self._learn(tries, now)
        if trouble is not None:
            self._cut_at, self.why = now, trouble.why
        if trouble is not None or now - self._cut_at >= HOLD:
            self.pace = next_pace(self.pace, trouble, self._settings)
        if self.pace >= FULL:
            self.why = None
        self._tell(world, job, trouble)

    def _learn(self, tries: Sequence[CommitTry], now: int) -> None:
        if now - self._span_began >= SPAN:
            self._baseline, self._span_began = self._baseline.next_span(), now
        self._baseline = self._baseline.with_window(tries)

    def _small_lane(self, world: World, now: int) -> SmallDwell | None:
        """What the small lane measured since the last cut, if it is time to look."""
        if now - self._looked_at < LOOK_EVERY:
            return None
        self._looked_at = now
        try:
            return summary_of(read_dwells(world, since=max(now - FRESH, self._cut_at)))
        except Transient as error:
            world.telemetry.log("small_lane_not_seen", why=str(error))
            return None

    def _tell(self, world: World, job: Job, trouble: Trouble | None) -> None:
        percent = self.percent
        world.telemetry.count(Metric.PACE, percent, lane=job.lane, operation=job.operation)
        at_end = percent in {100, self._settings.floor_percent} and percent != self._logged
        if abs(percent - self._logged) < LOGGED and not at_end:
            return
        self._logged = percent
        world.telemetry.log(
            "pace_changed",
            job_id=job.id,
            tenant=job.tenant,
            percent=percent,
            why=self.why.value if self.why else None,
            times=round(trouble.times, 2) if trouble else None,
        )


@dataclass(frozen=True)
class MeasuredStore:
    """``Store`` that tells how long each try of a chunk's transaction took and what refused it."""

    inner: Store
    runtime: Runtime
    saw: Callable[[CommitTry], None]

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        if action != COMMIT:
            self.inner.transact(action, writes)
            return
        started = self.runtime.now()
        refused: PacedBy | None = None
        try:
            self.inner.transact(action, writes)
        except Refused as error:
            refused = _refused(error)
            raise
        except Transient:
            refused = PacedBy.THROTTLING
            raise
        finally:
            now = self.runtime.now()
            self.saw(CommitTry(now, now - started, len(writes), refused))

    def get(self, key: Key) -> Item | None:
        return self.inner.get(key)

    def query(
        self,
        index: Index,
        partition: str,
        *,
        up_to: int | None = None,
        descending: bool = False,
        limit: int = 100,
        after: Cursor | None = None,
    ) -> Page:
        return self.inner.query(
            index, partition, up_to=up_to, descending=descending, limit=limit, after=after
        )

    def count(self, index: Index, partition: str, *, before: str | int, at_most: int) -> int:
        return self.inner.count(index, partition, before=before, at_most=at_most)

    def query_partition(
        self, pk: str, *, sk_prefix: str, limit: int = 100, after: Cursor | None = None
    ) -> Page:
        return self.inner.query_partition(pk, sk_prefix=sk_prefix, limit=limit, after=after)


def _refused(error: Refused) -> PacedBy | None:
    whys = {reason.why for reason in error.reasons if reason}
    if Why.THROTTLED in whys:
        return PacedBy.THROTTLING
    return PacedBy.CONFLICTS if Why.CONFLICT in whys else None
