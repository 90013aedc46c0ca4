"""Running effects beside the next chunk, in the worker that committed them."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..words.effect import EffectRun
from ..words.errors import Transient
from ..words.metrics import Metric
from ..words.timing import ms
from .rows import record_done, record_run
from .run import run_effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..words.effect import Effect
    from ..words.job import Lane
    from ..words.ports import Task, World

MAX_WAITING: Final = 4
"""Chunks the loop may be ahead of their effects before it waits for them."""
LOOK: Final = 20
"""ms between two looks at a full queue."""
IDLE: Final = 1000
TOGETHER: Final = 8
"""Done effects that one transaction records."""


class EffectRunner:
    """One thread that runs effects in the order of their commits.

    What fails is left to recovery, and so is all that comes while a sink is failing: a sink that
    is down must not hold the chunks up. So is what would not end in time.
    """

    def __init__(
        self,
        world: World,
        lane: Lane,
        *,
        ends_by: int | None = None,
        stopping: Callable[[], bool] = lambda: False,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """ends_by: when nothing may be in flight any more (ms); None: there is no such time.
        stopping: whether the process was asked to end. moved: called when an effect has run."""
        self._world = world
        self._lane = lane
        self._ends_by = ends_by
        self._stopping = stopping
        self._moved = moved
        self._slowest = 0
        """ms of the slowest run so far."""
        self._waiting: deque[Effect] = deque()
        self._wake = world.runtime.event()
        self._task: Task | None = None
        self._ended = world.runtime.event()
        self._closing = False
        self._failing_until = 0
        self._done: list[Effect] = []
        """Effects that have run and are not yet recorded as done."""
        self._done_since = 0

    def add(self, effect: Effect) -> None:
        """Run the effect soon; waits while too many are waiting, and leaves the effect to recovery
        while a sink is failing, or when there is no time for it."""
        if self._leaves_out():
            return
        if self._task is None:
            name = f"effects-{effect.job_id}"
            self._task = self._world.runtime.spawn(name, self._run)
        while len(self._waiting) >= MAX_WAITING:
            if self._leaves_out():
                return
            self._world.runtime.sleep(LOOK)
        self._waiting.append(effect)
        self._wake.set()

    def stop(self, *, drain: bool) -> None:
        """Returns when nothing is in flight, or no time is left to wait for it. drain: run what is
        still waiting first, as far as it ends in time."""
        if not drain:
            self._waiting.clear()
        self._closing = True
        self._wake.set()
        if self._task is None:
            return
        if self._ends_by is None:
            self._task.join()
        elif not self._ended.wait(max(0, self._ends_by - self._world.runtime.now())):
            # Its record is written on a condition, so it may still end beside the job's end.
            self._world.telemetry.log("effect_outlives_attempt", lane=self._lane.value)

    def _leaves_out(self) -> bool:
        """Whether an effect is left to recovery instead of being run now."""
        return self._failing or self._stopping() or not self._fits

    @property
    def _fits(self) -> bool:
        """Whether one more run, as slow as the slowest so far, would end in time."""
        ends_by = self._ends_by
        return ends_by is None or self._world.runtime.now() + self._slowest <= ends_by

    @property
    def _failing(self) -> bool:
        return self._world.runtime.now() < self._failing_until

    def _run(self) -> None:
        try:
            self._run_all()
        finally:
            self._ended.set()

    def _run_all(self) -> None:
        while True:
            self._wake = self._world.runtime.event()
            if self._waiting:
                self._run_one(self._waiting.popleft())
            elif self._closing:
                self._record()
                return
            else:
                self._wake.wait(IDLE)
            if len(self._done) >= TOGETHER or self._overdue:
                self._record()

    @property
    def _overdue(self) -> bool:
        """Whether recovery would soon run the done effects again."""
        patience = ms(self._world.timing.effect_grace) // 3
        return bool(self._done) and self._world.runtime.now() - self._done_since > patience

    def _run_one(self, effect: Effect) -> None:
        if self._leaves_out():
            return
        with self._left_to_recovery(effect):
            ran = self._timed(effect)
            if not ran.todo and not ran.refused:
                if not self._done:
                    self._done_since = self._world.runtime.now()
                self._done.append(effect)
                return
            if record_run(self._world, effect, ran, self._lane):
                self._count(effect, 1)
                return
            if ran.put_off and ran.retry_after_ms:
                # Asking again before the sink's pause is over would be for nothing.
                self._failing_until = self._world.runtime.now() + ran.retry_after_ms
                return
        pause = round(self._world.timing.effect_retry_base * 1000)
        self._failing_until = self._world.runtime.now() + pause

    def _timed(self, effect: Effect) -> EffectRun:
        began = self._world.runtime.now()
        try:
            return run_effect(self._world, effect)
        finally:
            self._slowest = max(self._slowest, self._world.runtime.now() - began)
            self._moved()

    def _record(self) -> None:
        """Record the effects that are done."""
        done, self._done = self._done, []
        if not done:
            return
        with self._left_to_recovery(done[0]):
            if record_done(self._world, done):
                self._count(done[0], len(done))
                return
            for effect in done:
                if record_run(self._world, effect, EffectRun({}, ()), self._lane):
                    self._count(effect, 1)

    @contextmanager
    def _left_to_recovery(self, effect: Effect) -> Iterator[None]:
        """Log an error of the block, and leave the effect to recovery."""
        try:
            yield
        except Transient as error:
            self._world.telemetry.log("effect_left", job_id=effect.job_id, why=str(error))
        except Exception as error:  # noqa: BLE001  recovery runs it again
            self._world.telemetry.log("effect_crashed", job_id=effect.job_id, error=error)

    def _count(self, effect: Effect, number: int) -> None:
        self._world.telemetry.count(
            Metric.EFFECTS_DONE, number, lane=self._lane, operation=effect.operation
        )
