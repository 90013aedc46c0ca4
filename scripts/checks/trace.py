"""The files that one job's creation, chunk and end go through, in order: ``make trace``.

A small job runs on the in-memory adapters, and every call into a module of the rules is noted. A
reader knows the nouns (``words``) and how the table is written (``storage``); these are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from types import FrameType
from typing import Final

from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import submit
from handlers.jobs.selection.request import accept
from handlers.jobs.words.job import Lane
from handlers.testing.world import memory_world

RULES: Final = "handlers.jobs."
LEFT_OUT: Final = (f"{RULES}words.", f"{RULES}storage.")


@dataclass
class Trace:
    """The calls of one step of a job's life, as they came: ``package.module.function``."""

    calls: list[str] = field(default_factory=list)

    @property
    def path(self) -> list[str]:
        """The modules, each time control comes to it from another one."""
        modules = (".".join(call.split(".")[:2]) for call in self.calls)
        return [module for module, _ in groupby(modules)]

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(self.path))

    @property
    def switches(self) -> int:
        """How often a reader turns to another file."""
        return max(0, len(self.path) - 1)


@contextmanager
def traced() -> Iterator[Trace]:
    """Note every call of the block into the rules."""
    trace = Trace()

    def note(frame: FrameType, event: str, _: object) -> None:
        module = str(frame.f_globals.get("__name__"))
        if event != "call" or not module.startswith(RULES) or module.startswith(LEFT_OUT):
            return
        function = frame.f_code.co_qualname
        if "<" not in function and not function.endswith("__"):  # those are read where they stand
            trace.calls.append(f"{module.removeprefix(RULES)}.{function}")

    sys.setprofile(note)
    try:
        yield trace
    finally:
        sys.setprofile(None)


def life_of_a_job() -> dict[str, Trace]:
    """A small job over two records, by step: create, begin, chunk, finish."""
    world = memory_world()
    world.records.load("acme", {id_: {"price": 10, "version": 1} for id_ in ("a", "b")})
    body = {
        "operation": "adjust_number",
        "subject": "products",
        "params": {"field": "price", "add": 1},
        "ids": ["a", "b"],
    }
    steps: dict[str, Trace] = {}
    with traced() as steps["create"]:
        accepted = accept(body, world.operations, max_ids=world.limits.max_inline_ids)
        submit(world, "acme", accepted)
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    with traced() as whole:
        on_message(world, delivery, Worker("a worker"))
    steps |= _parts(whole)
    return steps


def _parts(whole: Trace) -> dict[str, Trace]:
    """A worker's calls, divided where its attempt begins and where it concludes."""
    begun = whole.calls.index("execution.attempt.run_attempt")
    ending = whole.calls.index("execution.attempt._Attempt.conclude")
    return {
        "begin": Trace(whole.calls[:begun]),
        "work": Trace(whole.calls[begun:ending]),
        "finish": Trace(whole.calls[ending:]),
    }


def main() -> None:
    for name, trace in life_of_a_job().items():
        print(f"\n{name}: {len(trace.files)} files, {trace.switches} switches")
        for file in trace.files:
            calls = dict.fromkeys(call for call in trace.calls if call.startswith(f"{file}."))
            print(f"  {file:26} {', '.join(call.removeprefix(f'{file}.') for call in calls)}")


if __name__ == "__main__":
    main()
