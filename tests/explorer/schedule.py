"""Processes that stop at every port call, and the choices of who goes on.

Each thread of a process is a greenlet. It stops before a call and goes on when it is chosen: the
call, and all that the rules do up to the next one, is one step. What a process knows is the row of
answers it was given, so two runs in which every process was given the same answers, and which left
the same store and queues, are in the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from greenlet import getcurrent, greenlet

from handlers.jobs.words.errors import OutcomeUnknown, Refused
from tests.simulation.hub import START, Killed

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


@dataclass
class Process:
    name: str
    lane: Lane | None = None
    """The lane whose messages it receives; None when it receives none."""
    dead: bool = False
    history: int = 0
    """A hash of all answers it was given."""
    beats: int = 0
    """Heartbeats that its threads may still make."""
    deadline: int | None = None
    """When it is ended (ms); None: never."""
    threads: list[Thread] = field(default_factory=list)
    tokens: int = 0
    stopping: bool = False
    """It was asked to end."""
    failed_at: int = 0
    """When a call of it last failed (ms)."""


class Thread:
    def __init__(
        self, schedule: Schedule, process: Process, label: str, run: Callable[[], None]
    ) -> None:
        self.process = process
        self.label = label
        self.parent = schedule.current
        self.call: Call | None = Call("start")
        self._run = run
        self.green = greenlet(self._body, parent=schedule.main)

    def _body(self) -> None:
        try:
            self._run()
        except Killed:
            return
        finally:
            self.call = None


class Schedule:
    """The clock, the processes and the trace of one run."""

    def __init__(self) -> None:
        self.main = getcurrent()
        self.now = START
        self.current: Thread | None = None
        self.threads: dict[str, Thread] = {}
        self.trace: list[tuple[str, str, str]] = []
        self.crashes: list[str] = []
        self.fault = Fault.NONE
        self.network = Process("network")
        """Has the writes whose effect comes late."""

    def start(self, process: Process, name: str, run: Callable[[], None]) -> Thread:
        label = process.name + (f"/{name}" if name else "")
        while label in self.threads:
            label += "'"
        thread = Thread(self, process, label, run)
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
        self.main.switch()
        if thread.process.dead:
            raise Killed
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

        self.start(self.network, "", arrive).call = Call("start", at_once=lambda: True)

    def answered(self, what: str, result: object) -> None:
        thread = self.current
        assert thread is not None
        process = thread.process
        process.history = hash((process.history, thread.label, what, repr(result), self.now))

    # --- from outside -------------------------------------------------------------------------

    def choices(self, faults: int) -> list[Choice]:
        """What can happen next. faults: how many may still happen."""
        ready = [t for t in self.threads.values() if t.call is not None and t.call.ready()]
        found = [Choice(thread.label) for thread in ready]
        if faults:
            found += [
                Choice(t.label, fault)
                for t in ready
                if t.call is not None
                for fault in t.call.faults
            ]
        return found

    def at_once(self) -> Thread | None:
        for thread in self.threads.values():
            call = thread.call
            if call is not None and call.ready() and call.at_once():
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
        self._switch(thread)

    def step_without_fault(self, thread: Thread) -> None:
        self.fault = Fault.NONE
        self._switch(thread)

    def _switch(self, thread: Thread) -> None:
        self.current = thread
        try:
            thread.green.switch()
        except Exception as error:  # noqa: BLE001  whatever comes out here is a finding
            self.crashes.append(f"{thread.label}: {error!r}")
        finally:
            self.current = None

    def kill(self, process: Process) -> None:
        process.dead = True
        for thread in process.threads:
            if thread.call is not None and not thread.green.dead:
                self.current = thread
                try:
                    thread.green.throw(Killed)
                except Killed:
                    pass  # it had not begun
                finally:
                    self.current = None
            thread.call = None

    def close(self, processes: Sequence[Process]) -> None:
        """A greenlet that waits for ever would keep its whole world in memory."""
        for process in processes:
            self.kill(process)

    def note(self, what: str, how: object = "") -> None:
        """The watch's notes are not needed: the trace has every step."""


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


class StepTask:
    def __init__(self, done: StepEvent) -> None:
        self._done = done

    def join(self) -> None:
        self._done.until_set()


class StepRuntime:
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

    def spawn(self, name: str, run: Callable[[], None]) -> StepTask:
        done = StepEvent(self._schedule, self._process)

        def body() -> None:
            try:
                run()
            finally:
                done.set()

        thread = self._schedule.start(self._process, name.partition("-")[0], body)
        thread.call = Call("start", at_once=lambda: True)
        return StepTask(done)


def maker_of(job_id: str) -> str:
    """The process that made the job: its id is twelve digits of time and the process's token."""
    return job_id[12:-4]
