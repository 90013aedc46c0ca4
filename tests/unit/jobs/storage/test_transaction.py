"""What a refusal means when several writes objected at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.storage.transaction import Rejected, Transaction, execute
from handlers.jobs.transitions.conditions import JOB, LEASE
from handlers.jobs.words.errors import Reason, Refused, Why
from handlers.jobs.words.writes import Check, Key, Present
from handlers.testing.job_store import MemoryStore
from handlers.testing.world import memory_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.writes import Write

TWO = Transaction(
    "two",
    {role: Check(Key(role, "X"), when=(Present("x"),)) for role in (LEASE, JOB)},
)


class Refusing(MemoryStore):
    """Refuses each transaction for the next of the given reasons, then takes it."""

    def __init__(self, answers: list[list[Reason | None]]) -> None:
        super().__init__()
        self.answers = answers

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        if self.answers:
            raise Refused(self.answers.pop(0))
        assert action == "two"
        assert len(writes) == 2


@pytest.mark.parametrize("passing", [Why.CONFLICT, Why.THROTTLED])
def test_contention_beside_a_failed_condition_is_no_objection(passing: Why) -> None:
    """A beat on the lease at the moment of a commit must not look like a lost lease."""
    world = replace(memory_world(), store=Refusing([[Reason(passing), Reason(Why.CONDITION)]]))
    with pytest.raises(Rejected) as caught:
        execute(world, TWO)
    assert set(caught.value.reasons) == {JOB}


def test_contention_alone_is_tried_again() -> None:
    store = Refusing([[Reason(Why.CONFLICT), None], [None, Reason(Why.THROTTLED)]])
    execute(replace(memory_world(), store=store), TWO)
    assert not store.answers
