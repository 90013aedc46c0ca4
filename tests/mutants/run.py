"""Runs every mutant against the unit tests that call its function, and writes the page.

``make mutants`` starts it. The tests are collected once; each mutant gets a child process, which
puts the mutant's code in and runs the tests until an assertion fails.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import pytest

from handlers.jobs.words.errors import FairlaneError

from .generate import ROOT, RULES, Mutant, modules, mutants
from .page import (
    PAGE,
    Row,
    Verdict,
    complaints,
    row_of,
    rows_of_page,
    score,
    to_be_run,
    write_page,
)
from .reached import Reached, remember, remembered, states_of, watched
from .swap import NotSwapped, functions_by_place, swap_in

OLDEST: Final = (3, 12)
"""The first Python that tells which functions a test calls."""
LOOK_S: Final = 0.05
"""Between two looks whether a child has ended."""
WORKERS: Final = int(os.environ.get("WORKERS", "2"))
BUDGET: Final = float(os.environ.get("BUDGET", "3"))
"""Seconds of tests (as measured without a mutant) that a mutant is run against at most."""
MOST_CPU: Final = 1 + 3 * BUDGET
"""Seconds of CPU after which a mutant's process is ended."""
BROKEN: Final = ("NameError", "UnboundLocalError")
"""What a change raises that took away where a name is given its value."""
MOST_CRASHES: Final = 10
"""Tests that crash, after which no other is asked for an assertion."""
ALARM: Final = 240
"""The same in seconds of the clock, for a process that only waits."""
MAP_ALARM: Final = 1800
REPORTED: Final = 100
"""Mutants between two lines that say how far it is."""
LOG: Final = ROOT / "build" / "mutants.jsonl"
MAP: Final = ROOT / "build" / "mutants-map.json"
TESTS: Final = "tests/unit/jobs"
QUIETLY: Final = ("-q", "-s", "--no-header", "--tb=line", "--assert=plain")
"""Nobody reads what a failing test says."""

T = TypeVar("T")


def is_caught(error: BaseException) -> bool:
    """Whether a test noticed the mutant: an assertion failed, or the rules refused in words. Any
    other exception is a crash of the mutant."""
    if isinstance(error, AssertionError | pytest.fail.Exception | FairlaneError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    return last is not None and f"{RULES}/" in last.filename and (last.line or "")[:6] == "raise "


@dataclass
class Runner:
    """A plugin of pytest: instead of the tests, it runs the mutants."""

    asked: Sequence[Mutant]
    resume: bool = False
    """Go on where a run that was stopped has stopped."""
    results: list[tuple[Mutant, Verdict]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """What the tests of this process raised."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        # Hypothesis is a plugin of pytest, which loads it first.
        from hypothesis import Phase, settings  # noqa: PLC0415

        # A failing example need not be the smallest; looking for that takes most of the time.
        settings.register_profile(
            "mutants", settings.get_profile("repeat"), phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        began = time.monotonic()
        functions_by_place()
        # A collection in a child would visit, and so copy, all that the parent has loaded.
        gc.freeze()
        states = states_of({item.nodeid: item.path for item in items.values()})
        reached = remembered(MAP, states)
        self._map([item for item in items.values() if item.nodeid not in reached.calls], reached)
        remember(MAP, reached, states)
        for test in reached.failed:
            say(f"left out, because it fails without a mutant: {test}")
            del reached.calls[test]
        say(f"{len(items)} tests mapped in {time.monotonic() - began:.0f} s")
        state = sha256("".join(states.values()).encode()).hexdigest()[:10]
        known = logged(state) if self.resume else {}
        self.results = [(m, known[m.key]) for m in self.asked if m.key in known]
        asked = [m for m in self.asked if m.key not in known]
        jobs = [partial(self._try, m, reached, items) for m in asked]
        with open_log() as log:
            for mutant, answer in zip(asked, in_children(jobs, ALARM), strict=True):
                verdict = answer if isinstance(answer, Verdict) else died(answer)
                self.results.append((mutant, verdict))
                log.write(json.dumps([state, mutant.key, verdict.word, verdict.by]) + "\n")
                log.flush()
                if len(self.results) % REPORTED == 0:
                    say(f"{len(self.results)} of {len(self.asked)} mutants")
        seconds = time.monotonic() - began
        say(f"{len(asked)} mutants in {seconds:.0f} s")
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
            self.errors.append(call.excinfo.value)
        yield

    def pytest_report_teststatus(self) -> tuple[str, str, str]:
        return "", "", ""

    def _map(self, items: Sequence[pytest.Item], reached: Reached) -> None:
        """Add the tests to the call map, each half of them in a child of its own."""
        halves = [partial(self._map_part, items[n::WORKERS]) for n in range(WORKERS)]
        for found in in_children(halves, MAP_ALARM):
            if not isinstance(found, Reached):
                raise pytest.UsageError(f"the call map could not be made: {found}")
            reached.join(found)

    def _map_part(self, items: Sequence[pytest.Item]) -> Reached:
        reached = Reached()
        for item in items:
            watched(reached, item.nodeid, partial(self._passes, item))
        return reached

    def _try(self, mutant: Mutant, reached: Reached, known: Mapping[str, pytest.Item]) -> Verdict:
        """Called in a child, when its turn comes: it has the results until then."""
        items = [known[test] for test in chosen(reached, mutant, self.results)]
        if not items:
            return Verdict("survived", "no test calls it")
        try:
            swap_in(mutant)
        except NotSwapped as error:
            return Verdict("error", f"not put in: {error}")
        crashes: list[str] = []
        for item in items:
            errors = self._errors_of(item)
            if any(is_caught(error) for error in errors):
                return Verdict("caught", item.nodeid)
            if errors:
                crashes.append(f"{type(errors[0]).__name__} in {item.nodeid}")
            if len(crashes) == MOST_CRASHES:
                break
        if crashes:
            return Verdict("error" if crashes[0].startswith(BROKEN) else "crashed", crashes[0])
        return Verdict("survived", f"{len(items)} tests")

    def _passes(self, item: pytest.Item) -> bool:
        return not self._errors_of(item)

    def _errors_of(self, item: pytest.Item) -> list[BaseException]:
        """Run one test; what it raised."""
        self.errors.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return list(self.errors)


def open_log() -> TextIO:
    LOG.parent.mkdir(exist_ok=True)
    return LOG.open("a", encoding="utf-8")


def logged(state: str) -> dict[str, Verdict]:
    """The verdicts of earlier runs of the same tests, by the mutant's key."""
    if not LOG.exists():
        return {}
    lines = map(json.loads, LOG.read_text(encoding="utf-8").splitlines())
    return {key: Verdict(word, by) for of, key, word, by in lines if of == state}


def chosen(
    reached: Reached, mutant: Mutant, results: Sequence[tuple[Mutant, Verdict]] = ()
) -> list[str]:
    """The tests that a mutant is run against: first those that caught others of its function, then
    of its module, then those named after the module, then the quickest. results: of the mutants so
    far."""
    near = {v.by for m, v in results if (m.module, m.where) == (mutant.module, mutant.where)}
    beside = {v.by for m, v in results if m.module == mutant.module}
    own = f"/test_{Path(mutant.module).stem}"
    calling = reached.of(mutant.module, mutant.where)
    calling.sort(key=lambda t: (t not in near, t not in beside, own not in t, reached.seconds[t]))
    found: list[str] = []
    left = BUDGET
    for test in calling:
        left -= reached.seconds[test]
        if left < 0 and found:
            break
        found.append(test)
    return found


def died(answer: object) -> Verdict:
    return Verdict("error", f"its process ended: {answer}")


# --- children ---------------------------------------------------------------------------------


def in_children(jobs: Sequence[Callable[[], T]], alarm: int) -> Iterator[T | str]:
    """The jobs' results in their order, each from a child process; text that says how a child
    died. At most ``WORKERS`` run at once, none for longer than ``alarm`` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        running: dict[int, int] = {}
        done: dict[int, T | str] = {}
        waiting = list(enumerate(jobs))
        given = 0
        while given < len(jobs):
            while waiting and len(running) < WORKERS:
                number, job = waiting.pop(0)
                running[_child(job, Path(folder) / str(number), alarm)] = number
            # One's own children alone: the process may have others, of which somebody else waits.
            looked = [(pid, os.waitpid(pid, os.WNOHANG)) for pid in running]
            ended = [(pid, status) for pid, (found, status) in looked if found]
            for pid, status in ended:
                number = running.pop(pid)
                done[number] = _answer(Path(folder) / str(number), status)
            if not ended:
                time.sleep(LOOK_S)
            while given in done:
                yield done.pop(given)
                given += 1


def _child(job: Callable[[], object], to: Path, alarm: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # threads of earlier tests: there are none
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(alarm)
        if alarm == ALARM:
            signal.setitimer(signal.ITIMER_PROF, MOST_CPU)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        to.write_bytes(pickle.dumps(job()))
        code = 0
    finally:
        os._exit(code)


def _answer(path: Path, status: int) -> Any:
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError, pickle.PickleError, EOFError):
        if code == 0:
            return pickle.loads(path.read_bytes())  # noqa: S301  a child of this process wrote it
    if code == -signal.SIGPROF:
        return f"it ran for {MOST_CPU:.0f} s"
    if code == -signal.SIGALRM:
        return f"it waited for {ALARM} s"
    return f"exit code {code}"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def asked(arguments: Sequence[str], every: Sequence[Mutant], rows: Sequence[Row]) -> list[Mutant]:
    """The mutants to be run. rows: the page's."""
    if "--changed" in arguments:
        return to_be_run(every, rows)
    named = {each for each in arguments if not each.startswith("--")}
    if unknown := named - {mutant.module for mutant in every}:
        raise SystemExit(f"no mutants in {', '.join(sorted(unknown))}")
    return [mutant for mutant in every if not named or mutant.module in named]


def main(arguments: Sequence[str]) -> int:
    if sys.version_info < OLDEST:
        say(
            "make mutants needs Python 3.12 or newer, for sys.monitoring; this is "
            f"{sys.version.split()[0]}. Name another one: make mutants PYTHON=python3.13"
        )
        return 1
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # the tests' generated input is the same in every run
    every = [mutant for name in modules() for mutant in mutants(name)]
    rows = rows_of_page()
    runner = Runner(asked(arguments, every, rows), resume="--resume" in arguments)
    if runner.asked:
        options = [*QUIETLY, "-p", "no:cacheprovider", TESTS]
        code = pytest.main(options, plugins=[runner])
        if (
            code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
            or not runner.results
        ):
            return int(code) or 1
    listed = write_page(every, [*rows, *(row_of(*result) for result in runner.results)])
    missing = complaints(every, listed)
    for line in [*missing, score(listed), f"wrote {PAGE.relative_to(ROOT)}"]:
        say(line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
