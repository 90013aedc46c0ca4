"""Processes whose threads are greenlets: one thread runs until it gives way, and a process that is
killed is unwound. Who goes on is decided by a subclass: by chance (``hub``), or in every order
(``tests/explorer``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

START = 1_700_000_000_000


class Killed(BaseException):
    """The process is gone; nothing of it runs any more."""


class Process:
    """What lives and dies together: its threads, its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.stopping = False
        """It was asked to end."""
        self.failed_at = 0
        """When a call of it last failed."""
        self.threads: list[Thread] = []


class Thread:
    """One greenlet."""

    def __init__(
        self, threads: Threads, process: Process, label: str, run: Callable[[], None]
    ) -> None:
        self.process = process
        self.label = label
        self.parent = threads.current
        """Who spawned it."""
        self._run = run
        self.green = greenlet(self._body, parent=threads.main)

    def _body(self) -> None:
        try:
            self._run()
        except Killed:
            return


class Threads:
    """The clock, and the thread that runs. ``main`` is the greenlet that decides who goes on."""

    def __init__(self) -> None:
        self.main = getcurrent()
        self.now = START
        self.current: Thread | None = None
        self.crashes: list[str] = []
        """Exceptions that no rule may let out."""
        self._killed: list[Process] = []
        """Killed by a thread that still runs, and not unwound yet."""

    def give_way(self) -> None:
        """The running thread stops until it is chosen again. Raises Killed."""
        thread = self.current
        assert thread is not None
        self.main.switch()
        if thread.process.dead:  # killed while it waited
            raise Killed

    def switch(self, thread: Thread) -> None:
        """From ``main``: the thread goes on until it gives way or is over."""
        self._to(thread)
        while self._killed:
            self._unwind(self._killed.pop(0))

    def _to(self, thread: Thread) -> None:
        self.current = thread
        try:
            thread.green.switch()
        except Exception as error:  # noqa: BLE001  whatever comes out here is a finding
            self.crashes.append(f"{thread.label}: {error!r}")
        finally:
            self.current = None

    def kill(self, process: Process) -> None:
        """From ``main`` or from a thread; one of the process itself raises Killed next."""
        if process.dead:
            return
        process.dead = True
        if self.current is None:
            self._unwind(process)
        else:
            # A greenlet that is unwound goes on in ``main`` and not in the thread that killed it.
            self._killed.append(process)

    def _unwind(self, process: Process) -> None:
        """Whatever a dead process tries on its way out is refused."""
        for thread in process.threads:
            if not thread.green.dead:
                self.current = thread
                try:
                    thread.green.throw(Killed)
                except Killed:
                    pass  # it had not begun
                finally:
                    self.current = None


class Event(Protocol):
    """``Event`` of the rules, and a wait without an end."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout_ms: int) -> bool: ...

    def until_set(self) -> None: ...


class Task:
    """``Task`` of a simulated process."""

    def __init__(self, done: Event) -> None:
        self._done = done

    def join(self) -> None:
        self._done.until_set()


class Runtime(ABC):
    """The part of ``Runtime`` that starts threads."""

    @abstractmethod
    def event(self) -> Event: ...

    @abstractmethod
    def start(self, name: str, run: Callable[[], None]) -> object:
        """Start a thread of the process."""

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        done = self.event()

        def body() -> None:
            try:
                run()
            finally:
                done.set()

        self.start(name.partition("-")[0], body)
        return Task(done)
