"""Checks of a local stack's processes, which AWS's answers say nothing of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .finding import Finding, ok, wrong

if TYPE_CHECKING:
    from scripts.local.state import State


def check_processes(state: State, name: str) -> Iterator[Finding]:
    heal = f"fairlane local up --name {name}"
    running = sum(worker.alive() for worker in state.workers)
    said = f"{running} of {state.wanted} bulk workers run"
    yield wrong("bulk lane", said, heal) if running < state.wanted else ok("bulk lane", said)
    for what, process in (("search engine", state.search), ("supervisor", state.supervisor)):
        if process is not None:
            alive = process.alive()
            yield ok(what, "it runs") if alive else wrong(what, "its process has ended", heal)
