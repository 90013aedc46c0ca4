"""What refusals and lost replies mean for a transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.storage.transaction import (
    TRIES,
    Contended,
    Indeterminate,
    Rejected,
    Transaction,
    execute,
)
from handlers.jobs.transitions.conditions import JOB, LEASE
from handlers.jobs.words.errors import Denied, OutcomeUnknown, Reason, Refused, Transient, Why
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


class Scripted(MemoryStore):
    """Raises the next of the given errors for each transaction; None: it is taken."""

    def __init__(self, *answers: Exception | None) -> None:
        super().__init__()
        self.answers = list(answers)

    def transact(self, action: str, writes: Sequence[Write]) -> None:
        assert (action, len(writes)) == ("two", 2)
        if error := self.answers.pop(0):
            raise error


def known(*looks: bool) -> Transaction:
    """The transaction, of which these looks say whether it has taken effect."""
    said = list(looks)
    return replace(TWO, applied=lambda _: said.pop(0))


REFUSED = Refused([Reason(Why.CONDITION), None])


@pytest.mark.parametrize(
    ("answers", "looks"),
    [
        ([OutcomeUnknown()], [True]),
        ([OutcomeUnknown(), None], [False]),
        ([OutcomeUnknown(), REFUSED], [False, True]),
        ([OutcomeUnknown(), Transient("down"), None], [False, False]),
        ([OutcomeUnknown(), Transient("down")], [False, True]),
        ([Transient("down"), None], []),
        ([Refused([Reason(Why.CONFLICT), None]), None], []),
    ],
)
def test_a_lost_reply_alone_makes_one_look_whether_it_took_effect(
    answers: list[Exception | None], looks: list[bool]
) -> None:
    store = Scripted(*answers)
    execute(replace(memory_world(), store=store), known(*looks))
    assert not store.answers


@pytest.mark.parametrize(
    ("answers", "looks"), [([REFUSED], []), ([OutcomeUnknown(), REFUSED], [False, False])]
)
def test_a_refusal_is_another_s_unless_a_reply_of_ours_was_lost(
    answers: list[Exception | None], looks: list[bool]
) -> None:
    store = Scripted(*answers)
    with pytest.raises(Rejected):
        execute(replace(memory_world(), store=store), known(*looks))


@pytest.mark.parametrize("error", [Denied("no right to write"), Transient("down")])
def test_the_last_error_says_why_nothing_was_written(error: Transient) -> None:
    """A permission that is missing is one still: attempts count it, and operators are told."""
    store = Scripted(*[Transient("before")] * (TRIES - 1), error)
    with pytest.raises(Transient, match=str(error)) as raised:
        execute(replace(memory_world(), store=store), known())
    assert type(raised.value) is type(error)
    assert raised.value.__cause__ is error


def test_what_was_not_written_and_what_cannot_be_known_are_told_apart() -> None:
    for first, error in ((Transient("down"), Transient), (OutcomeUnknown(), Indeterminate)):
        store = Scripted(first, *[Transient("down")] * (TRIES - 1))
        with pytest.raises(Transient) as raised:
            execute(replace(memory_world(), store=store), known(*[False] * TRIES))
        assert type(raised.value) is error
    store = Scripted(*[Refused([Reason(Why.CONFLICT), None])] * TRIES)
    with pytest.raises(Contended) as contended:
        execute(replace(memory_world(), store=store), TWO)
    assert set(contended.value.reasons) == {LEASE}
