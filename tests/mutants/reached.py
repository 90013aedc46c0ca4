"""Which functions of the rules a test calls, and how long it takes."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .generate import RULES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

TOOL: Final = 4
"""A number that no debugger, profiler or coverage tool of the standard takes."""
PREFIX: Final = f"{RULES}/"


@dataclass
class Reached:
    """(module, qualified name of the outermost function), by test."""

    calls: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def join(self, other: Reached) -> None:
        self.calls |= other.calls
        self.seconds |= other.seconds
        self.failed += other.failed

    def of(self, module: str, where: str) -> list[str]:
        """The tests that call the function, or anything of the module when it is not one."""
        return [
            test
            for test, calls in self.calls.items()
            if (module, where) in calls or (not where and any(m == module for m, _ in calls))
        ]


def watched(reached: Reached, test: str, run: Callable[[], bool]) -> None:
    """Run the test, and note what it calls. run: whether it passed."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # from Python 3.12
    met: set[tuple[str, str]] = set()

    def started(code: CodeType, _offset: int) -> object:
        if code.co_filename.startswith(PREFIX):
            module = code.co_filename.removeprefix(PREFIX)
            met.add((module, code.co_qualname.partition(".<locals>")[0]))
        return monitoring.DISABLE

    monitoring.use_tool_id(TOOL, "mutants")
    monitoring.register_callback(TOOL, monitoring.events.PY_START, started)
    monitoring.restart_events()
    monitoring.set_events(TOOL, monitoring.events.PY_START)
    before = time.process_time()
    try:
        passed = run()
    finally:
        monitoring.set_events(TOOL, 0)
        monitoring.free_tool_id(TOOL)
    reached.calls[test] = met
    reached.seconds[test] = time.process_time() - before
    if not passed:
        reached.failed.append(test)
