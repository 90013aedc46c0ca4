"""A runtime whose clock moves only when every participant waits.

The thread that calls is the main participant; each spawned task is a thread of its own, but only
one participant runs at a time. When it sleeps, waits or joins, the one that is due next runs, and
the clock jumps to the time it was waiting for. The order depends on nothing but the calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

START: Final = 1_700_000_000_000
"""A fresh runtime's time: epoch ms in November 2023."""


class Deadlock(AssertionError):
    """Every participant waits for another one."""


class ManualEvent:
    """``Event`` of a ManualRuntime."""

    def __init__(self, runtime: ManualRuntime) -> None:
        self._runtime = runtime
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_ms: int) -> bool:
        if not self._set:
            self._runtime.park(self._runtime.now() + timeout_ms, self)
        return self._set


def _taken(lock: Lock) -> Lock:
    lock.acquire()
    return lock


@dataclass
class _Participant:
    turn: Lock = field(default_factory=lambda: _taken(Lock()))
    """Nobody's while it is the participant's turn to go on."""
    deadline: int | None = 0
    event: ManualEvent | None = None
    parked: int = 0
    """When it began to wait, as a running number: the one that waits longest goes first."""

    def due(self, now: int) -> int | None:
        if self.event is not None and self.event.is_set():
            return now
        return self.deadline


class ManualTask:
    """``Task`` of a ManualRuntime."""

    def __init__(self, runtime: ManualRuntime) -> None:
        self._runtime = runtime
        self.done = ManualEvent(runtime)

    def join(self) -> None:
        if not self.done.is_set():
            self._runtime.park(None, self.done)


class ManualRuntime:
    """``Runtime`` with a virtual clock, seeded chance and one participant running at a time.

    tick: ms by which the clock moves on each time it is looked at, as a real one does between two
    looks.
    """

    def __init__(self, seed: int = 0, start: int = START, *, tick: int = 0) -> None:
        self._tick = tick
        self._random = Random(seed)  # noqa: S311 - repeatable is what it is for
        self._now = start
        self._order = 0
        self._main = _Participant()
        self._tasks: dict[Thread, _Participant] = {}
        self._parked: list[_Participant] = []

    def now(self) -> int:
        self._now += self._tick
        return self._now

    def sleep(self, ms: int) -> None:
        """Let that much virtual time pass, and with it everything that is due until then."""
        self.park(self._now + max(0, ms))

    def random(self) -> float:
        return self._random.random()

    def token(self) -> str:
        return f"{self._random.getrandbits(80):020x}"

    def event(self) -> ManualEvent:
        return ManualEvent(self)

    def spawn(self, name: str, run: Callable[[], None]) -> ManualTask:
        """The task starts when the caller waits for the first time."""
        task = ManualTask(self)
        participant = _Participant()

        def body() -> None:
            participant.turn.acquire()
            try:
                run()
            finally:
                task.done.set()
                del self._tasks[current_thread()]
                self._next().turn.release()

        thread = Thread(target=body, name=name, daemon=True)
        self._tasks[thread] = participant
        self._enter(participant, self._now)
        thread.start()
        return task

    def park(self, deadline: int | None, event: ManualEvent | None = None) -> None:
        """Wait until the time or the event, whichever is first, and let others run. Raises
        Deadlock when none can run."""
        participant = self._tasks.get(current_thread(), self._main)
        self._enter(participant, deadline, event)
        try:
            chosen = self._next()
        except Deadlock:
            self._parked.remove(participant)
            raise
        if chosen is not participant:
            chosen.turn.release()
            participant.turn.acquire()

    def _enter(
        self, participant: _Participant, deadline: int | None, event: ManualEvent | None = None
    ) -> None:
        self._order += 1
        participant.deadline, participant.event, participant.parked = deadline, event, self._order
        self._parked.append(participant)

    def _next(self) -> _Participant:
        due = [(t, p.parked, p) for p in self._parked if (t := p.due(self._now)) is not None]
        if not due:
            raise Deadlock
        at, _, chosen = min(due, key=lambda entry: entry[:2])
        self._now = max(self._now, at)
        self._parked.remove(chosen)
        return chosen
