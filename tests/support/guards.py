"""Case C80: one attribute of an item is changed just before a transaction that would have been
accepted.

A case says which attribute, and whether the store then refuses the transaction. ``not_covered``
says which conditions no case needs: a condition that can be removed without a case noticing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from handlers.jobs.storage.transaction import Transaction, Transition, execute
from handlers.jobs.words.errors import Refused
from handlers.jobs.words.writes import (
    AnyOf,
    AtMost,
    Below,
    BelowName,
    Delete,
    Differs,
    Equals,
    Update,
)
from handlers.testing.conditions import holds

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Condition, Item, Value, Write
    from handlers.testing.world import MemoryWorld


@dataclass(frozen=True)
class Setup:
    """A world in which the transaction of this action is accepted, and the call that sends it."""

    world: MemoryWorld
    action: str
    act: Callable[[], object]


def sends(world: MemoryWorld, made: Transaction | Transition) -> Setup:
    transaction = made.transaction if isinstance(made, Transition) else made
    return Setup(world, transaction.action, lambda: execute(world, transaction))


def by_name(*builds: Callable[[], Setup]) -> dict[str, Callable[[], Setup]]:
    return {build.__name__.replace("_", " "): build for build in builds}


@dataclass(frozen=True)
class Asked:
    """The value that the condition on this attribute compares with, moved by so much."""

    by: int


class Gone:
    """The attribute is removed."""

    def __repr__(self) -> str:
        return "gone"


GONE: Final = Gone()
NO_ITEM: Final[Mapping[str, object]] = {"no item": GONE}


@dataclass(frozen=True)
class Case:
    setup: str
    item: str
    """The label of the item: its sort key without numbers, and ``2`` for the second of its kind."""
    refused: bool
    change: Mapping[str, object] = field(hash=False)

    def __str__(self) -> str:
        changes = " ".join(f"{name} {_named(value)}" for name, value in self.change.items())
        verdict = "refused" if self.refused else "accepted"
        return f"{self.setup}: {self.item} {changes} {verdict}"


def refuse(setup: str, item: str, /, **change: object) -> Case:
    return Case(setup, item, refused=True, change=change)


def accept(setup: str, item: str, /, **change: object) -> Case:
    return Case(setup, item, refused=False, change=change)


def absent(setup: str, item: str, *, refused: bool) -> Case:
    """The whole item is not there."""
    return Case(setup, item, refused=refused, change=NO_ITEM)


def moved_job(setup: str, item: str = "JOB") -> list[Case]:
    """A job that is not as it was read, one attribute at a time."""
    return [
        refuse(setup, item, state="OTHER"),
        refuse(setup, item, fence=Asked(1)),
        refuse(setup, item, attempt=Asked(1)),
        refuse(setup, item, has_slot="other"),
        refuse(setup, item, dispatches=Asked(1)),
    ]


def lost_lease(setup: str) -> list[Case]:
    return [refuse(setup, "LEASE", job_id="another"), refuse(setup, "LEASE", fence=Asked(1))]


@dataclass(frozen=True)
class Outcome:
    """What became of the transaction."""

    refused: tuple[str, ...]
    """The labels of the items that objected."""
    asked: Mapping[str, tuple[tuple[Condition, ...], Item]]
    """By label: the conditions, and the item that they were asked of."""


class _Seen(BaseException):
    """The transaction was carried out; what comes after it is not this test's."""


def carry_out(setup: Setup, item: str = "", change: Mapping[str, object] | None = None) -> Outcome:
    """Send the setup's transaction, with an item changed just before."""
    store = setup.world.store
    transact = store.transact
    found: list[Outcome] = []

    def watched(action: str, writes: Sequence[Write]) -> None:
        if action != setup.action:
            transact(action, writes)
            return
        by_label = dict(_labelled(writes))
        if change is not None:
            transact("change", [_changed(by_label[item], change)])
        asked = {label: (write.when, _item(setup, write)) for label, write in by_label.items()}
        refused: tuple[str, ...] = ()
        try:
            transact(action, writes)
        except Refused as error:
            pairs = zip(by_label, error.reasons, strict=True)
            refused = tuple(label for label, reason in pairs if reason)
        found.append(Outcome(refused, asked))
        raise _Seen

    with patch.object(store, "transact", watched), suppress(_Seen):
        setup.act()
    assert found, f"{setup.action} was not sent"
    return found[0]


def check(setups: Mapping[str, Callable[[], Setup]], case: Case) -> None:
    """Carry the case out, and hold its verdict against the store's."""
    outcome = carry_out(setups[case.setup](), case.item, case.change)
    assert outcome.refused == ((case.item,) if case.refused else ())


def not_covered(setups: Mapping[str, Callable[[], Setup]], cases: Sequence[Case]) -> list[str]:
    """The conditions that no case needs.

    A condition needs a case in which it alone does not hold. Each alternative of an ``AnyOf`` needs
    a case in which it alone does. An order needs a case on either side of its boundary.
    """
    missing = []
    for name, build in setups.items():
        unchanged = carry_out(build())
        assert not unchanged.refused, f"{name} is refused as it is"
        outcomes = [unchanged]
        outcomes += [carry_out(build(), c.item, c.change) for c in cases if c.setup == name]
        for label, (when, _) in unchanged.asked.items():
            for condition in when:
                missing += [
                    f"{name}: {label}: {what}"
                    for what in _unneeded(condition, label, when, outcomes)
                ]
    return missing


def _unneeded(
    condition: Condition, label: str, when: Sequence[Condition], outcomes: Sequence[Outcome]
) -> Iterator[str]:
    others = tuple(other for other in when if other is not condition)
    items = [outcome.asked[label][1] for outcome in outcomes]
    if not any(holds(others, item) and not holds((condition,), item) for item in items):
        yield f"no case is refused by {condition} alone"
    parts = condition.conditions if isinstance(condition, AnyOf) else (condition,)
    for part in parts:
        rest = [other for other in parts if other is not part]
        passed = [i for i in items if holds((part,), i) and not any(holds((r,), i) for r in rest)]
        if not passed:
            yield f"no case is accepted by {part} alone"
        if isinstance(part, Below | AtMost | BelowName):
            yield from _boundary(part, items)


def _boundary(order: Below | AtMost | BelowName, items: Sequence[Item]) -> Iterator[str]:
    last = 0 if isinstance(order, AtMost) else -1
    for distance in (last, last + 1):
        if not any(_distance(order, item) == distance for item in items):
            yield f"no case lies {distance} from the boundary of {order}"


def _distance(order: Below | AtMost | BelowName, item: Item) -> int | None:
    value = item.get(order.name)
    limit = item.get(order.other) if isinstance(order, BelowName) else order.value
    if not isinstance(value, int) or not isinstance(limit, int):
        return None
    return value - limit


def _labelled(writes: Sequence[Write]) -> Iterator[tuple[str, Write]]:
    met: dict[str, int] = {}
    for write in writes:
        name = "#".join(part for part in write.key.sk.split("#") if not part.isdigit())
        met[name] = met.get(name, 0) + 1
        yield (name if met[name] == 1 else f"{name} {met[name]}"), write


def _item(setup: Setup, write: Write) -> Item:
    """The item with its key; none has no attributes."""
    store = setup.world.store
    item = store.get(write.key)
    pk, sk = store._key_names[write.key.table]
    return {} if item is None else {**item, pk: write.key.pk, sk: write.key.sk}


def _changed(write: Write, change: Mapping[str, object]) -> Write:
    if change is NO_ITEM:
        return Delete(write.key)
    asked = dict(_compared(write.when))
    values: dict[str, Value] = {}
    gone = []
    for name, value in change.items():
        match value:
            case Gone():
                gone.append(name)
            case Asked(by):
                assert name in asked, f"no condition compares {name} of {write.key.sk}"
                value_asked = asked[name]
                values[name] = value_asked + by if isinstance(value_asked, int) else value_asked
            case _:
                values[name] = value  # type: ignore[assignment]  # a case names storable values
    return Update(write.key, set=values, remove=tuple(gone))


def _compared(when: Sequence[Condition]) -> Iterator[tuple[str, Value]]:
    for condition in when:
        if isinstance(condition, AnyOf):
            yield from _compared(condition.conditions)
        elif isinstance(condition, Equals | Differs | Below | AtMost):
            yield condition.name, condition.value


def _named(value: object) -> str:
    return f"asked{value.by:+}" if isinstance(value, Asked) else str(value)
