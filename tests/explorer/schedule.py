"""Processes that stop at every port call, and the choices of who goes on.

Each thread of a process is a greenlet. It stops before a call and goes on when it is chosen: the
call, and all that the rules do up to the next one, is one step. What a process knows is the row of
answers it was given, so two runs in which every process was given the same answers, and which left
the same store and queues, are in the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from handlers.jobs.words.errors import OutcomeUnknown, Refused
from tests.simulation import threads
from tests.simulation.threads import Killed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.job import Lane

T = TypeVar("T")


class Fault(StrEnum):
    NONE = ""
    CRASH = "crashed before"
    LOST = "reply lost, no effect"
    LOST_AFTER = "reply lost after the effect"
    LATE = "reply lost, the effect comes later"


@dataclass(frozen=True)
class Choice:
    """Which thread makes its step, and what befalls it."""

    thread: str
    fault: Fault = Fault.NONE


@dataclass
class Call:
    """Where a thread has stopped."""

    what: str
    faults: tuple[Fault, ...] = ()
    ready: Callable[[], bool] = lambda: True
    at_once: Callable[[], bool] = lambda: False
    """Whether it commutes with all that others do: then it is not chosen, but made at once."""


class Process(threads.Process):
    def __init__(self, name: str, lane: Lane | None = None) -> None:
        """lane: the one whose messages it receives; None when it receives none."""
        super().__init__(name)
        self.lane = lane
        self.history = 0
        """A hash of all answers it was given."""
        self.beats = 0
        """Heartbeats that its threads may still make."""
        self.deadline: int | None = None
        """When it is ended (ms); None: never."""
        self.tokens = 0


class Thread(threads.Thread):
    """``call`` is where it has stopped."""

    process: Process
    call: Call | None = None

    @property
    def waiting(self) -> Call | None:
        """The call that it can make now."""
        if self.process.dead or self.green.dead or self.call is None:
            return None
        return self.call if self.call.ready() else None


class Schedule(threads.Threads):
    """The clock, the processes and the trace of one run."""

    current: Thread | None

    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[str, Thread] = {}
        self.trace: list[tuple[str, str, str]] = []
        self.fault = Fault.NONE
        self.network = Process("network")
        """Has the writes whose effect comes late."""

    def start(
        self, process: Process, name: str, run: Callable[[], None], *, at_once: bool = False
    ) -> Thread:
        """at_once: the thread looks at nothing before its first stop, so it may begin at once."""
        label = process.name + (f"/{name}" if name else "")
        while label in self.threads:
            label += "'"
        thread = Thread(self, process, label, run)
        thread.call = Call("start", at_once=lambda: at_once)
        process.threads.append(thread)
        self.threads[label] = thread
        return thread

    # --- in a process -------------------------------------------------------------------------

    def stop_at(self, call: Call) -> Fault:
        """The thread stops before this call; what befalls it when it goes on. Raises Killed."""
        thread = self.current
        assert thread is not None
        if thread.process.dead:
            raise Killed
        thread.call = call
        self.give_way()
        thread.call = None
        return self.fault

    def make(self, what: str, act: Callable[[], T], *, faults: Sequence[Fault] = ()) -> T:
        """Stop before the call, then make it. Raises OutcomeUnknown, and what the call raises.

        A crash before a read is no fault of its own: it leaves what a crash before the next write
        leaves. A read that fails is read again."""
        fault = self.stop_at(Call(what, tuple(faults)))
        if fault is not Fault.NONE and self.current is not None:
            self.current.process.failed_at = self.now
        if fault in {Fault.LOST, Fault.LATE}:
            if fault is Fault.LATE:
                self._comes_later(what, act)
            self.answered(what, fault)
            raise OutcomeUnknown
        try:
            result = act()
        except Exception as error:
            self.answered(what, repr(error))
            raise
        if fault is Fault.LOST_AFTER:
            self.answered(what, fault)
            raise OutcomeUnknown
        self.answered(what, result)
        return result

    def _comes_later(self, what: str, act: Callable[[], object]) -> None:
        """The write is on its way, whatever becomes of its sender."""

        def arrive() -> None:
            self.stop_at(Call(f"{what} arrives"))
            try:
                act()
            except Refused:
                self.answered(what, "refused")
            else:
                self.answered(what, "written")

        self.start(self.network, "", arrive, at_once=True)

    def answered(self, what: str, result: object) -> None:
        thread = self.current
        assert thread is not None
        process = thread.process
        process.history = hash((process.history, thread.label, what, repr(result), self.now))

    # --- from outside -------------------------------------------------------------------------

    def choices(self, faults: int) -> list[Choice]:
        """What can happen next. faults: how many may still happen."""
        ready = [(t.label, call) for t in self.threads.values() if (call := t.waiting)]
        found = [Choice(label) for label, _ in ready]
        if faults:
            found += [Choice(label, fault) for label, call in ready for fault in call.faults]
        return found

    def at_once(self) -> Thread | None:
        for thread in self.threads.values():
            if (call := thread.waiting) and call.at_once():
                return thread
        return None

    def step(self, choice: Choice) -> None:
        thread = self.threads[choice.thread]
        assert thread.call is not None
        self.trace.append((thread.label, thread.call.what, choice.fault.value))
        process = thread.process
        process.history = hash((process.history, choice.thread, choice.fault))
        if choice.fault is Fault.CRASH:
            self.kill(thread.process)
            return
        self.fault = choice.fault
        self.switch(thread)

    def step_without_fault(self, thread: Thread) -> None:
        self.fault = Fault.NONE
        self.switch(thread)

    def close(self, processes: Sequence[Process]) -> None:
        """A greenlet that waits for ever would keep its whole world in memory."""
        for process in processes:
            self.kill(process)


class StepEvent:
    """``Event`` of a process. A wait with a time-out is a heartbeat's: it ends when it is chosen,
    as often as the process may beat."""

    def __init__(self, schedule: Schedule, process: Process) -> None:
        self._schedule = schedule
        self._process = process
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_ms: int) -> bool:
        if not self._set:
            self._schedule.stop_at(Call("wait", ready=self._over, at_once=self.is_set))
        if not self._set:
            self._process.beats -= 1
        self._schedule.answered("wait", self._set)
        return self._set

    def _over(self) -> bool:
        return self._set or self._process.beats > 0

    def until_set(self) -> None:
        if not self._set:
            self._schedule.stop_at(Call("join", ready=self.is_set, at_once=self.is_set))


class StepRuntime(threads.Runtime):
    """``Runtime`` of one process: the schedule's clock. Sleeping takes no time: another process
    may always be chosen instead."""

    def __init__(self, schedule: Schedule, process: Process) -> None:
        self._schedule = schedule
        self._process = process

    def now(self) -> int:
        return self._schedule.now

    def sleep(self, ms: int) -> None: ...

    def random(self) -> float:
        return 0.5

    def token(self) -> str:
        """See ``maker_of``."""
        self._process.tokens += 1
        return f"{self._process.name}{self._process.tokens:04}"

    def event(self) -> StepEvent:
        return StepEvent(self._schedule, self._process)

    def start(self, name: str, run: Callable[[], None]) -> Thread:
        return self._schedule.start(self._process, name, run, at_once=True)


def maker_of(job_id: str) -> str:
    """The process that made the job: its id is twelve digits of time and the process's token."""
    return job_id[12:-4]
