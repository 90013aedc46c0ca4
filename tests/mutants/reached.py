"""Which functions of the rules a test calls, and how long it takes; remembered between runs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from .generate import ROOT, RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import CodeType

TOOL: Final = 4
"""A number that no debugger, profiler or coverage tool of the standard takes."""
PREFIX: Final = f"{RULES}/"
SHARED: Final = ("handlers", "tests/support")
"""What every test may use."""


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


def remember(path: Path, reached: Reached, states: Mapping[str, str]) -> None:
    """Keep what was noted of the tests that passed. states: by test, see ``states_of``."""
    kept = {
        test: [states[test], reached.seconds[test], sorted(calls)]
        for test, calls in reached.calls.items()
        if test not in reached.failed
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept), encoding="utf-8")


def remembered(path: Path, states: Mapping[str, str]) -> Reached:
    """What was kept of the tests whose state is still the same."""
    reached = Reached()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for test, (state, seconds, calls) in kept.items():
        if states.get(test) == state:
            reached.calls[test] = {(module, where) for module, where in calls}
            reached.seconds[test] = seconds
    return reached


def states_of(paths: Mapping[str, Path]) -> Mapping[str, str]:
    """A hash of each test's file, the rules and what tests share. paths: of the files, by test."""
    shared = sha256()
    for folder in SHARED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            shared.update(path.read_bytes())
    files = dict.fromkeys(paths.values(), "")
    for path in files:
        own = shared.copy()
        own.update(path.read_bytes())
        files[path] = own.hexdigest()[:10]
    return {test: files[path] for test, path in paths.items()}
