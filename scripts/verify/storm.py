"""Carrying out what goes wrong in the crash scenario: kills, stops, functions that hang or stall,
recovery that is down.

Recovery's schedule is a minute, which is the whole scenario; so its rule is switched off, and the
scenario calls the deployed function itself, every few seconds like the other times of this stack.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

import psutil
from botocore.exceptions import ClientError

from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.stack import LocalStack

from .chaos import FUNCTION_TIMEOUT, STOP_TIMEOUT
from .site import stand_still

STARTED: Final = "worker_started"
"""What a worker logs when it begins to serve."""
RECOVERY_S: Final = 2.0
STALL: Final = 0.5, 0.95
"""Of a function's time: from, to."""


@dataclass(frozen=True)
class Plan:
    """Seconds from the start."""

    kills: tuple[float, ...]
    stops: tuple[float, ...]
    freezes: tuple[float, ...]
    recovery_down: tuple[float, float]
    """From, to."""
    ends: float

    @classmethod
    def of(cls, seed: int, *, ends: float, kills: int, stops: int, freezes: int) -> Plan:
        chance = Random(seed)  # noqa: S311  repeatable is what it is for

        def moments(count: int) -> tuple[float, ...]:
            return tuple(sorted(chance.uniform(2, ends) for _ in range(count)))

        down = ends * 0.2, ends * 0.6
        return cls(moments(kills), moments(stops), moments(freezes), down, ends)


@dataclass
class Happened:
    """What went wrong, as far as it could be seen from outside."""

    killed: int = 0
    stopped: list[Process] = field(default_factory=list)
    exits: list[int | None] = field(default_factory=list)
    """Exit codes of the workers that were asked to stop; None: it had to be killed."""
    recoveries: int = 0
    refused: int = 0
    """Calls of recovery while it was down."""


class Storm:
    """Carries a plan out against a stack; ``tick`` is called again and again."""

    def __init__(self, stack: LocalStack, plan: Plan, chance: Random) -> None:
        self.happened = Happened()
        self._stack = stack
        self._plan = plan
        self._chance = chance
        self._todo = sorted(self._events(), key=lambda event: event[0])
        self._start = time.monotonic()
        self._recovery = _function(stack, "Recovery")
        self._small = _function(stack, "SmallLane")
        self._next_recovery = 0.0
        stand_still(stack)

    def tick(self) -> bool:
        """Do what is due and can be done; False when nothing more will go wrong."""
        now = time.monotonic() - self._start
        self._todo = [(at, do) for at, do in self._todo if at > now or not do()]
        if now >= self._next_recovery:
            self._recover()
            self._next_recovery = now + RECOVERY_S
        return bool(self._todo)

    def settle(self) -> None:
        """Wait for the workers that were asked to stop."""
        for process in self.happened.stopped:
            try:
                self.happened.exits.append(process.wait(STOP_TIMEOUT))
            except TimeoutError:
                process.kill()
                self.happened.exits.append(None)

    def _events(self) -> Iterator[tuple[float, Callable[[], bool]]]:
        """When, and what; it tells whether it could be done."""
        for at in self._plan.kills:
            yield at, self._kill
        for at in self._plan.stops:
            yield at, self._stop
        for at in self._plan.freezes:
            yield at, self._freeze
        down, up = self._plan.recovery_down
        yield down, self._recovery_down
        yield up, self._recovery_up
        yield self._plan.ends, lambda: True

    def _victim(self) -> Process | None:
        """One that has no other end coming, and does not still start: that has no job to lose."""
        leaving = {process.pid for process in self.happened.stopped}
        serving = [w for w in self._stack.workers.running if STARTED in w.log.read_text()]
        staying = [worker for worker in serving if worker.pid not in leaving]
        return self._chance.choice(staying) if staying else None

    def _kill(self) -> bool:
        victim = self._victim()
        if victim is None:
            return False
        victim.kill()
        self.happened.killed += 1
        self._stack.workers.start()
        return True

    def _stop(self) -> bool:
        victim = self._victim()
        if victim is None:
            return False
        victim.terminate()
        self.happened.stopped.append(victim)
        self._stack.workers.start()
        return True

    def stall(self) -> None:
        """Take most of its time from what the small lane's functions do now. What is left may be
        too little for the rest of a job, also where the machine needs far less for all of it."""
        functions = self._suspended()
        try:
            if functions:
                time.sleep(FUNCTION_TIMEOUT * self._chance.uniform(*STALL))
        finally:
            for process in functions:
                with suppress(psutil.Error):
                    process.resume()

    def _freeze(self) -> bool:
        """Let the small lane's functions hang, so that each is killed at the end of its time."""
        return bool(self._suspended())

    def _suspended(self) -> list[psutil.Process]:
        """The processes of the small lane's functions, which stand still from now on. None while
        one of them starts: the local AWS waits for a start without end."""
        functions = self._functions()
        if len(functions) > serving(_log(self._stack), self._small):
            return []
        for process in functions:
            with suppress(psutil.Error):
                process.suspend()
        return functions

    def _functions(self) -> list[psutil.Process]:
        """The processes of the small lane's function."""
        aws, found = self._stack.state.aws, []
        for child in psutil.Process(aws.pid).children(recursive=True) if aws else ():
            with suppress(psutil.Error):
                if child.environ().get("AWS_LAMBDA_FUNCTION_NAME") == self._small:
                    found.append(child)
        return found

    def _recovery_down(self) -> bool:
        self._stack.clients.lambda_.put_function_concurrency(
            FunctionName=self._recovery, ReservedConcurrentExecutions=0
        )
        return True

    def _recovery_up(self) -> bool:
        """Not before it was called in vain."""
        if not self.happened.refused:
            return False
        self._stack.clients.lambda_.delete_function_concurrency(FunctionName=self._recovery)
        return True

    def _recover(self) -> None:
        try:
            answer = self._stack.clients.lambda_.invoke(FunctionName=self._recovery, Payload=b"{}")
        except ClientError as error:
            if error.response["Error"]["Code"] != "TooManyRequestsException":
                raise
            self.happened.refused += 1
            return
        if answer.get("FunctionError"):
            raise LocalError(f"recovery failed: {answer['Payload'].read()!r}")
        self.happened.recoveries += 1


def _function(stack: LocalStack, prefix: str) -> str:
    """The name of the one deployed function whose logical id begins like this."""
    [name] = [
        resource.id
        for logical, resource in stack.deployed.resources.items()
        if resource.type == "AWS::Lambda::Function" and logical.startswith(prefix)
    ]
    return name


def timed_out(stack: LocalStack) -> int:
    """Invocations that the local AWS killed for taking too long."""
    return _log(stack).count(f"timed out after {FUNCTION_TIMEOUT}s")


def serving(log: str, function: str) -> int:
    """Processes of a function that have started, by the local AWS's log, and were not killed for
    taking too long."""
    killed = f"Lambda {function} timed out after {FUNCTION_TIMEOUT}s"
    return log.count(f"Lambda worker spawned for {function} (") - log.count(killed)


def _log(stack: LocalStack) -> str:
    return (stack.folder.path / "ministack.log").read_text(errors="replace")
