"""Finding the operations of this package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..jobs.words.operation import Operation, Skip
from .parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..jobs.words.operation import Fields, Operations, Outcome

P = TypeVar("P", bound=Parameters)

SEARCH_INDEX: Final = "search_index"
WEBHOOK: Final = "webhook"
EVENT_BUS_SINK: Final = "event_bus"
EVERY_SINK: Final = (SEARCH_INDEX, WEBHOOK, EVENT_BUS_SINK)
NO_SUCH_RECORD: Final = Skip("no such record")

_found: dict[str, Operation] = {}


def operation(
    name: str,
    parameters: type[P],
    *,
    writes: Callable[[P], frozenset[str]],
    sinks: tuple[str, ...] = EVERY_SINK,
    missing: Outcome = NO_SUCH_RECORD,
) -> Callable[[Callable[[Fields, P], Outcome]], Callable[[Fields, P], Outcome]]:
    """Declare the decorated pure function as an operation.

    name: what clients send. parameters: their pydantic model. writes: the fields it may write,
    given the parameters. sinks: what has to hear of its changes, where a deployment has it.
    missing: what becomes of ids without a record. The function's docstring is what clients read.
    Raises ValueError when the name is taken, TypeError when the parameters would not keep numbers
    exact.
    """
    if not issubclass(parameters, Parameters):
        raise TypeError(f"{parameters.__name__} of operation {name!r} has to extend Parameters")

    def declare(apply: Callable[[Fields, P], Outcome]) -> Callable[[Fields, P], Outcome]:
        if name in _found:
            raise ValueError(f"operation {name!r} is declared twice")
        _found[name] = Operation(
            name,
            parameters,
            apply,
            _erase(writes),
            sinks=sinks,
            description=inspect.cleandoc(apply.__doc__ or ""),
            missing=missing,
        )
        return apply

    return declare


@cache
def all_operations() -> Operations:
    """Every operation of this package by name."""
    package = importlib.import_module(__package__ or "")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return MappingProxyType(_found)


def _erase(writes: Callable[[Any], frozenset[str]]) -> Callable[[Any], frozenset[str]]:
    return writes
