"""Runs every mutant against the unit tests that call its function, and writes the page.

``make mutants`` starts it. The tests are collected once; each mutant gets a child process, which
puts the mutant's code in and runs the tests until an assertion fails.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import pytest

from handlers.jobs.words.errors import FairlaneError

from .generate import ROOT, RULES, Mutant, modules, mutants
from .page import PAGE, Result, Row, Verdict, rows_of_page, write_page
from .reached import Reached, watched
from .swap import NotSwapped, swap_in

LOOK_S: Final = 0.05
"""Between two looks whether a child has ended."""
WORKERS: Final = 2
BUDGET: Final = 6.0
"""Seconds of tests (as measured without a mutant) that a mutant is run against at most: those
named after its module first, then the quickest."""
MOST_CPU: Final = 20
"""Seconds of CPU after which a mutant's process is ended."""
ALARM: Final = 240
"""The same in seconds of the clock, for a process that only waits."""
MAP_ALARM: Final = 1800
LOG: Final = ROOT / "build" / "mutants.jsonl"
TESTS: Final = "tests/unit/jobs"

T = TypeVar("T")


def is_caught(error: BaseException) -> bool:
    """Whether a test noticed the mutant: an assertion failed, or the rules refused in words. Any
    other exception is a crash of the mutant, which proves nothing about the guard."""
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
    results: list[Result] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """What the tests of this process raised."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        began = time.monotonic()
        reached = self._map(list(items.values()))
        for test in reached.failed:
            say(f"left out, because it fails without a mutant: {test}")
            del reached.calls[test]
        say(f"{len(items)} tests mapped in {time.monotonic() - began:.0f} s")
        known = logged() if self.resume else {}
        self.results = [Result(m, known[m.key]) for m in self.asked if m.key in known]
        asked = [m for m in self.asked if m.key not in known]
        jobs = [partial(self._try, m, [items[t] for t in chosen(reached, m)]) for m in asked]
        with open_log() as log:
            for mutant, answer in zip(asked, in_children(jobs, ALARM), strict=True):
                verdict = answer if isinstance(answer, Verdict) else died(answer)
                self.results.append(Result(mutant, verdict))
                log.write(json.dumps([mutant.key, verdict.word, verdict.by]) + "\n")
                log.flush()
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

    def _map(self, items: Sequence[pytest.Item]) -> Reached:
        """The call map, each half of the tests in a child of its own."""
        reached = Reached()
        halves = [partial(self._map_part, items[n::WORKERS]) for n in range(WORKERS)]
        for found in in_children(halves, MAP_ALARM):
            if not isinstance(found, Reached):
                raise pytest.UsageError(f"the call map could not be made: {found}")
            reached.join(found)
        return reached

    def _map_part(self, items: Sequence[pytest.Item]) -> Reached:
        reached = Reached()
        for item in items:
            watched(reached, item.nodeid, partial(self._passes, item))
        return reached

    def _try(self, mutant: Mutant, items: Sequence[pytest.Item]) -> Verdict:
        if not items:
            return Verdict("survived", "no test calls it")
        try:
            swap_in(mutant)
        except NotSwapped as error:
            return Verdict("error", f"not put in: {error}")
        crash = ""
        for item in items:
            errors = self._errors_of(item)
            if any(is_caught(error) for error in errors):
                return Verdict("caught", item.nodeid)
            if errors:
                crash = crash or f"{type(errors[0]).__name__} in {item.nodeid}"
        return Verdict("error", crash) if crash else Verdict("survived", f"{len(items)} tests")

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


def logged() -> dict[str, Verdict]:
    """The results of earlier runs, by the hash of the mutated source."""
    if not LOG.exists():
        return {}
    lines = map(json.loads, LOG.read_text(encoding="utf-8").splitlines())
    return {key: Verdict(word, by) for key, word, by in lines}


def chosen(reached: Reached, mutant: Mutant) -> list[str]:
    """The tests that a mutant is run against."""
    own = f"/test_{Path(mutant.module).stem}"
    calling = reached.of(mutant.module, mutant.where)
    calling.sort(key=lambda test: (own not in test, reached.seconds[test]))
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
        return f"it ran for {MOST_CPU} s"
    if code == -signal.SIGALRM:
        return f"it waited for {ALARM} s"
    return f"exit code {code}"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def asked(arguments: Sequence[str]) -> tuple[list[Mutant], list[Row]]:
    """The mutants to be run, and the rows of the page that stand without a run."""
    rows = rows_of_page()
    named = [each for each in arguments if not each.startswith("--")]
    every = {name: mutants(name) for name in modules()}
    keys = {mutant.key for of in every.values() for mutant in of}
    stand = [row for row in rows if row.key in keys]
    if named:
        return [mutant for name in named for mutant in every[name]], stand
    if "--changed" in arguments:
        standing = {row.key for row in stand}
        return [m for of in every.values() for m in of if m.key not in standing], stand
    return [mutant for of in every.values() for mutant in of], []


def main(arguments: Sequence[str]) -> int:
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # the tests' generated input is the same in every run
    began = time.monotonic()
    to_run, kept = asked(arguments)
    runner = Runner(to_run, resume="--resume" in arguments)
    if to_run:
        options = ["-q", "-s", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", TESTS]
        code = pytest.main(options, plugins=[runner])
        if (
            code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
            or not runner.results
        ):
            return int(code) or 1
    unexplained = write_page(runner.results, kept, seconds=round(time.monotonic() - began))
    say(f"wrote {PAGE.relative_to(ROOT)}")
    for line in unexplained:
        say(line)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
