"""The recovery function of a deployment that has fewer shards than it had."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers import recovery
from handlers.jobs.storage import control_table
from handlers.jobs.words.writes import Put
from tests.handlers.deployment import Context

if TYPE_CHECKING:
    from handlers.jobs.words.ports import World
    from tests.handlers.deployment import Deployment

MANY: Final = 8
ROWS: Final = 20


def run(monkeypatch: pytest.MonkeyPatch, world: World) -> int:
    """The dispatches that a run settled."""
    monkeypatch.setattr(recovery, "world", lambda *_, **__: world)
    return recovery.handler({}, Context())[control_table.DISPATCH]  # type: ignore[arg-type]  # the parts of a context that are used


def test_recovery_finds_what_lies_in_shards_that_are_no_more(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = replace(stack.world, due_shards=MANY)
    assert run(monkeypatch, before) == 0
    for number in range(ROWS):
        id_ = f"{number:032x}"
        due = control_table.due(control_table.DISPATCH, id_, before.runtime.now(), MANY)
        row = {"job_id": id_, "tenant": "acme", "lane": "small", "tries": 0, **due}
        before.store.transact("row", [Put(control_table.dispatch_key(id_, 1), row)])
    assert run(monkeypatch, replace(stack.world, due_shards=2)) == ROWS
