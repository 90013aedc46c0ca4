"""Taking a guard out of the rules: how mutations replace functions and rewrite transactions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handlers.jobs.storage.transaction import Transition
from handlers.jobs.words.writes import AnyOf

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from handlers.jobs.words.writes import Condition, Write

Mutation = Callable[[], "AbstractContextManager[object]"]


def registry() -> tuple[dict[str, Mutation], Callable[[Mutation], Mutation]]:
    """Mutations by name, and the decorator that adds one."""
    mutations: dict[str, Mutation] = {}

    def mutation(build: Mutation) -> Mutation:
        mutations[build.__name__.replace("_", " ")] = build
        return build

    return mutations, mutation


@contextmanager
def everywhere(original: Any, instead: Any) -> Iterator[None]:
    """The function replaced in every module of the rules that has its name."""
    found = [
        (module, name)
        for module in list(sys.modules.values())
        if module.__name__.startswith("handlers.jobs.")
        for name, value in list(vars(module).items())
        if value is original
    ]
    assert found, f"nobody has {original}"
    for module, name in found:
        setattr(module, name, instead)
    try:
        yield
    finally:
        for module, name in found:
            setattr(module, name, original)


def rewriting(
    original: Any, change: Callable[[dict[str, Write]], None]
) -> AbstractContextManager[object]:
    """The transactions that a function of the rules makes, changed."""

    def changed(*args: Any, **named: Any) -> Any:
        made = original(*args, **named)
        transaction = made.transaction if isinstance(made, Transition) else made
        writes = dict(transaction.writes)
        change(writes)
        mutated = replace(transaction, writes=writes)
        return replace(made, transaction=mutated) if isinstance(made, Transition) else mutated

    return everywhere(original, changed)


def without(writes: dict[str, Write], role: str, *names: str) -> None:
    """The write without its conditions on these attributes; if none is named, without any."""
    write = writes[role]
    kept = tuple(c for c in write.when if names and _name(c) not in names)
    writes[role] = replace(write, when=kept)


def _name(condition: Condition) -> str:
    return _name(condition.conditions[0]) if isinstance(condition, AnyOf) else condition.name
