"""A worker of the last release beside one of this version, on one queue and the same tables.

The release's worker is a process that runs the release's own code. This version's is in this
process, and so is what creates jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from handlers.jobs.words.job import EndReason, Job
from handlers.jobs.words.operation import Change, Fields, Operation, Outcome
from handlers.jobs.words.ports import World
from handlers.jobs.words.states import State
from handlers.operations.parameters import Parameters
from scripts.checks.released.source import VERSION
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.worker import STOP_GRACE_S

from .framework import Bench, Expectation
from .site import CHUNK, FIELD, Site, dying, site, slots

MANY: Final = 4 * CHUNK
"""Records of a job."""
KNOWN: Final = "adjust_number"
NEW: Final = "new_here"
"""An operation that the release does not have."""
HELD: Final = "held_open"
"""An operation whose second chunk waits, in the release's worker, as long as a file is there."""
OPERATIONS: Final = "operations_of_the_release"
MODULE: Final = f'''"""An operation of the release's deployment."""

import itertools
import time
from pathlib import Path

from fairlane.operations import Change, Parameters, operation

records = itertools.count()


class HeldOpen(Parameters):
    gate: str


@operation("{HELD}", HeldOpen, writes=lambda _: frozenset({{"{FIELD}"}}))
def held_open(record, parameters):
    """Add one; wait for the gate's file to go, but not in the first chunk."""
    late = next(records) >= {CHUNK}
    while late and Path(parameters.gate).exists():
        time.sleep(0.05)
    return Change({{"{FIELD}": int(str(record["{FIELD}"])) + 1}})
'''


class NewHere(Parameters):
    pass


class HeldOpen(Parameters):
    gate: str


def add_one(record: Fields, _: object) -> Outcome:
    return Change({FIELD: int(str(record[FIELD])) + 1})


@dataclass
class Sides:
    """What works on the bulk queue of one stack: nothing, at first."""

    here: Site
    code: Path
    """The release's code."""

    def __post_init__(self) -> None:
        own = {
            name: Operation(name, parameters, add_one, lambda _: frozenset({FIELD}))
            for name, parameters in ((NEW, NewHere), (HELD, HeldOpen))
        }
        self.world: World = replace(
            self.here.world, operations={**self.here.world.operations, **own}
        )
        """This version's."""
        self.gate = self.code / "gate"
        package = self.code / OPERATIONS
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "held_open.py").write_text(MODULE, encoding="utf-8")

    @contextmanager
    def released(self, **env: str) -> Iterator[Process]:
        """The release's worker, until the end of the block at the latest."""
        given = {"FAIRLANE_OPERATIONS": OPERATIONS, "FAIRLANE_LIMITS_CHUNK_SIZE": str(CHUNK)}
        workers = self.here.stack.workers
        [worker] = workers.start(code=self.code, env={**given, **env})
        try:
            yield worker
        finally:
            workers.stop()

    def job(self, subject: str, operation: str, params: Mapping[str, object]) -> Job:
        ids = self.here.load(MANY, name=subject)
        return self.here.submit(ids, subject, operation=operation, params=params, world=self.world)

    def known(self, subject: str) -> Job:
        return self.job(subject, KNOWN, {"field": FIELD, "add": 1})

    def until(self, what: str, job: Job, worker: Process, *states: State) -> Job:
        """The job, as soon as it is at a checkpoint, was left, or is in one of these states.
        Raises LocalError when the release's worker has ended."""

        def seen() -> bool:
            if not worker.alive():
                raise LocalError(f"the worker of {VERSION} has ended:\n{worker.tail()}")
            now = self.here.job(job)
            left = now.not_understood_since is not None
            return bool(now.position) or left or now.state in states

        self.here.until(what, seen)
        return self.here.job(job)


def run(bench: Bench, code: Path) -> Iterator[Expectation]:
    """code: the release's, in a folder that may be written to."""
    with site(bench, "two-versions") as here:
        sides = Sides(here, code)
        with sides.released() as worker:
            with bench.steps.step(f"A worker of {VERSION} runs a job of this version"):
                job = here.ended(sides.known("asked-for-here"))
            yield _succeeded(here, f"a job of this version, run by a worker of {VERSION}", job)
            yield from _left(bench, sides, worker)
            yield from _begun_by_the_release(bench, sides, worker)
        yield from _rolled_back(bench, sides)


def without_patience(bench: Bench, code: Path) -> Iterator[Expectation]:
    """The control: the release's worker leaves nothing to newer ones."""
    with site(bench, "two-versions-control") as here:
        sides = Sides(here, code)
        with sides.released(FAIRLANE_TIMING_ROLLOUT="0") as worker:
            yield from _left(bench, sides, worker)


def _left(bench: Bench, sides: Sides, worker: Process) -> Iterator[Expectation]:
    here = sides.here
    with bench.steps.step(f"A job that {VERSION} does not understand"):
        job = sides.job("new-operation", NEW, {})
        seen = sides.until("it is left", job, worker, State.FAILED)
    yield Expectation.equal(
        f"a job whose operation {VERSION} does not know, with only its worker",
        expected=(State.QUEUED.value, 0, None),
        saw=(seen.state.value, seen.attempt, _text(seen.end_reason)),
    )
    with bench.steps.step("A worker of this version comes beside it"), slots(sides.world):
        job = here.ended(job)
    yield _succeeded(here, "the same job, with a worker of this version beside it", job)


def _begun_by_the_release(bench: Bench, sides: Sides, worker: Process) -> Iterator[Expectation]:
    here = sides.here
    with bench.steps.step(f"A worker of {VERSION} dies in the middle of a job"):
        sides.gate.touch()
        job = sides.job("begun-by-the-release", HELD, {"gate": str(sides.gate)})
        begun = sides.until("it is begun", job, worker)
        worker.kill()
        worker.wait(STOP_GRACE_S)
        sides.gate.unlink()
        with slots(sides.world):
            job = here.ended(job)
    what = f"a job that {VERSION} began: so many records"
    yield Expectation.equal(what, expected=CHUNK, saw=begun.succeeded)
    yield _succeeded(here, "the same job, when this version has gone on with it", job, attempts=2)


def _rolled_back(bench: Bench, sides: Sides) -> Iterator[Expectation]:
    here = sides.here
    with bench.steps.step("A worker of this version dies in the middle of a job"):
        job = sides.known("begun-by-this-version")
        with slots(dying(here, 2)):
            here.until("its worker is dead", lambda: here.died)
    with bench.steps.step(f"A worker of {VERSION} goes on"), sides.released():
        ended = here.ended(job)
    what = f"rolled back: a job that this version began and {VERSION} ended"
    yield _succeeded(here, what, ended, attempts=2)


def _succeeded(here: Site, what: str, job: Job, *, attempts: int = 1) -> Expectation:
    """Each record was changed once. attempts: at least so many."""
    ids = [f"{job.subject}-{number:05}" for number in range(MANY)]
    once = sum(times == 1 for times in here.changes(ids))
    return Expectation.of(
        what,
        expected=f"{State.SUCCEEDED}, {MANY} records changed once, attempt {attempts} or later",
        saw=f"{job.state}, {once} records changed once, attempt {job.attempt}",
        ok=(job.state, job.succeeded, once) == (State.SUCCEEDED, MANY, MANY)
        and job.attempt >= attempts,
    )


def _text(reason: EndReason | None) -> str | None:
    return None if reason is None else reason.value
