"""Depth first through every order of steps, without going twice through one state."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .schedule import Choice, Fault
from .stage import MOST_STEPS, Stage

if TYPE_CHECKING:
    from .stage import Play


@dataclass(frozen=True)
class Bounds:
    faults: int = 1
    switches: int | None = 2
    """How often a thread that could go on has to wait for another one; None: as often as can be.
    The clock does not count."""
    states: int = 1_000_000
    """After so many the search stops."""


@dataclass
class Found:
    """What a search has seen."""

    play: str
    states: int = 0
    runs: int = 0
    ends: int = 0
    """Different states at the end of a run."""
    complete: bool = False
    """Every order within the bounds was seen."""
    wrong: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    """The steps that led to what is wrong."""

    def __str__(self) -> str:
        how = "all" if self.complete else "stopped at the bound"
        return f"{self.play}: {self.states} states, {self.runs} runs, {self.ends} ends ({how})"


@dataclass(frozen=True)
class _Path:
    """A run to be made: these choices first."""

    choices: tuple[Choice, ...]


class Search:
    def __init__(self, play: Play, bounds: Bounds) -> None:
        self.play = play
        self.bounds = bounds
        self.found = Found(play.name)
        self._seen: set[int] = set()
        self._ended: set[int] = set()
        self._left = [_Path(())]

    def run(self) -> Found:
        """Until every state was seen, something is wrong, or the bound is reached."""
        gc.disable()
        try:
            while self._left and not self.found.wrong and self.found.states < self.bounds.states:
                self._run(self._left.pop())
                if self.found.runs % 500 == 0:
                    gc.collect(0)
        finally:
            gc.enable()
        self.found.complete = not self._left and not self.found.wrong
        return self.found

    def _run(self, path: _Path) -> None:
        stage = Stage(self.play)
        self.found.runs += 1
        try:
            self._follow(stage, path)
        finally:
            stage.close()

    def _follow(self, stage: Stage, path: _Path) -> None:
        schedule = stage.schedule
        faults, switches = self.bounds.faults, self.bounds.switches
        last = ""
        made: list[Choice] = []
        for number in range(MOST_STEPS):
            while (thread := schedule.at_once()) is not None:
                schedule.step_without_fault(thread)
            if stage.wrong():
                self._report(stage)
                return
            choices = self._ordered(schedule.choices(faults), last)
            if not choices:
                self._end(stage)
                return
            free = not any(c.thread == last for c in choices)
            if switches == 0 and not free:
                choices = [c for c in choices if c.thread in {last, "clock"}]
            if number < len(path.choices):
                choice = path.choices[number]
            else:
                state = hash((stage.state(), faults, switches, last))
                if state in self._seen:
                    return
                self._seen.add(state)
                self.found.states += 1
                choice = choices[0]
                prefix = tuple(made)
                self._left += [_Path((*prefix, other)) for other in reversed(choices[1:])]
            made.append(choice)
            faults -= choice.fault is not Fault.NONE
            if choice.thread != "clock":
                if switches is not None and not free and choice.thread != last:
                    switches -= 1
                last = choice.thread
            schedule.step(choice)
        stage.watch.wrong("rest", f"more than {MOST_STEPS} steps")
        self._report(stage)

    @staticmethod
    def _ordered(choices: list[Choice], last: str) -> list[Choice]:
        """The thread that made the last step first, without a fault."""
        return sorted(choices, key=lambda c: (c.thread != last, c.fault is not Fault.NONE))

    def _end(self, stage: Stage) -> None:
        state = hash((stage.store.hash, stage.state()))
        if state in self._ended:
            return
        self._ended.add(state)
        self.found.ends += 1
        stage.settle()
        if not stage.wrong():
            for what in stage.judge():
                stage.watch.wrong("rest", what)
        if stage.wrong():
            self._report(stage)

    def _report(self, stage: Stage) -> None:
        self.found.wrong = stage.wrong()
        self.found.trace = [
            f"{label}: {what}" + (f" ({fault})" if fault else "")
            for label, what, fault in stage.schedule.trace
        ]
