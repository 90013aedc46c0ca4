"""Virtual time and the processes that live in it.

One heap of events, ordered by time, says which thread goes on; all chance comes from one seeded
source, so a seed is one run, always the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import TypeAlias

from . import threads
from .threads import Killed, Threads

Step: TypeAlias = tuple[int, str, str, object]
"""When, who, what, and how it went (rendered only when somebody looks)."""


class Hub(Threads):
    """The heap, the chance and the trace."""

    current: Thread | None

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)  # noqa: S311  repeatable is what it is for
        self.trace: list[Step] = []
        self._processes: list[Process] = []
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0

    def after(self, delay: float, act: Callable[[], None]) -> None:
        """Do it when ``delay`` ms have passed."""
        self._order += 1
        heappush(self._heap, (self.now + max(0, int(delay)), self._order, act))

    def run(self, over: Callable[[], bool]) -> None:
        """Until it is over, or nothing is left to happen."""
        while self._heap and not over():
            at, _, act = heappop(self._heap)
            self.now = max(self.now, at)
            act()

    def close(self) -> None:
        """End every process. A greenlet that waits for ever would keep its whole world in memory:
        no garbage collector looks into its stack."""
        self._heap.clear()
        for process in self._processes:
            self.kill(process)

    def note(self, what: str, how: object = "") -> None:
        who = self.current.label if self.current else "world"
        self.trace.append((self.now, who, what, how))

    # --- threads ------------------------------------------------------------------------------

    def start(self, process: Process, name: str, run: Callable[[], None]) -> Thread:
        label = f"{process.name}/{name}" if name else process.name
        thread = Thread(self, process, label, run)
        if not process.threads:
            self._processes.append(process)
        process.threads.append(thread)
        self.after(0, partial(self._resume, thread, thread.turn))
        return thread

    def park(self, delay: float | None) -> None:
        """Let others go on, for ``delay`` ms or until woken. Raises Killed."""
        thread = self.current
        assert thread is not None
        if thread.process.dead:
            raise Killed
        thread.turn += 1
        if delay is not None:
            self.after(delay, partial(self._resume, thread, thread.turn))
        self.give_way()

    def wake(self, thread: Thread, turn: int) -> None:
        self.after(0, partial(self._resume, thread, turn))

    def rouse(self, process: Process) -> None:
        """Wake a process that stands still."""
        process.asleep_until = self.now
        for thread, turn in process.deferred:
            self.wake(thread, turn)
        process.deferred.clear()

    def _resume(self, thread: Thread, turn: int) -> None:
        process = thread.process
        if process.dead or thread.turn != turn or thread.green.dead:
            return
        if process.asleep_until > self.now:
            process.deferred.append((thread, turn))
            self.after(process.asleep_until - self.now, partial(self._resume, thread, turn))
            return
        thread.turn += 1
        self.switch(thread)


class Process(threads.Process):
    """A process with an error of its clock."""

    def __init__(self, name: str, skew: int = 0) -> None:
        super().__init__(name)
        self.skew = skew
        """ms its clock is ahead."""
        self.old = False
        """It is of a version before the one that most are of."""
        self.asleep_until = 0
        self.deferred: list[tuple[Thread, int]] = []
        """What would have gone on while it stood still."""


class Thread(threads.Thread):
    """``turn`` tells a wake-up that is still meant from one that came too late."""

    process: Process
    turn = 0


class SimEvent:
    """``Event`` of a simulated process."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._set = False
        self._waiting: list[tuple[Thread, int]] = []

    def set(self) -> None:
        self._set = True
        for thread, turn in self._waiting:
            self._hub.wake(thread, turn)
        self._waiting.clear()

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_ms: int) -> bool:
        if not self._set:
            thread = self._hub.current
            assert thread is not None
            self._waiting.append((thread, thread.turn + 1))
            self._hub.park(timeout_ms)
        return self._set

    def until_set(self) -> None:
        while not self._set:
            self.wait(1_000_000)


class SimRuntime(threads.Runtime):
    """``Runtime`` of one process: the hub's time through a clock that may be wrong."""

    def __init__(self, hub: Hub, process: Process) -> None:
        self._hub = hub
        self._process = process

    def now(self) -> int:
        return self._hub.now + self._process.skew

    def sleep(self, ms: int) -> None:
        self._hub.park(ms)

    def random(self) -> float:
        return self._hub.random.random()

    def token(self) -> str:
        return f"{self._hub.random.getrandbits(80):020x}"

    def event(self) -> SimEvent:
        return SimEvent(self._hub)

    def start(self, name: str, run: Callable[[], None]) -> Thread:
        return self._hub.start(self._process, name, run)


class TrueClock(SimRuntime):
    """The queue's own clock, which is right by definition."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub, Process("queue"))
