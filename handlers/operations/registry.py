"""Declaring operations, and finding them: those of this package, and those of a team's own.

This is the one place that knows where operations come from.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..jobs.words.operation import Operation, Skip
from .inexact import check_exact
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
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
NOT_OPERATIONS: Final = ("test_", "conftest")
"""How modules of a team's package begin that hold its tests."""

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
    Raises ValueError when the name is taken or not one, or a sink is unknown; TypeError when the
    parameters would not keep numbers exact (see ``check_exact``), or the function is not one of a
    record and parameters.
    """
    if not NAME.fullmatch(name):
        raise ValueError(
            f"operation {name!r}: a name is up to 64 small letters, digits and underscores, and "
            "begins with a letter"
        )
    if not issubclass(parameters, Parameters):
        raise TypeError(f"{parameters.__name__} of operation {name!r} has to extend Parameters")
    check_exact(name, parameters)
    if unknown := sorted(set(sinks) - set(EVERY_SINK)):
        raise ValueError(
            f"operation {name!r} names the sinks {', '.join(unknown)}; there are "
            f"{', '.join(EVERY_SINK)}"
        )

    def declare(apply: Callable[[Fields, P], Outcome]) -> Callable[[Fields, P], Outcome]:
        if name in _found:
            raise ValueError(f"operation {name!r} is declared twice")
        _check_function(name, apply)
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
def all_operations(own: str | None = None) -> Operations:
    """Every operation by name: those of this package, and those declared in the modules of the
    importable package ``own``. Raises whatever importing it raises."""
    _import_modules(__package__ or "")
    if own is not None:
        _import_modules(own)
    return MappingProxyType(_found)


def _import_modules(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith(NOT_OPERATIONS) and not module.ispkg:
            importlib.import_module(f"{name}.{module.name}")


def _check_function(name: str, apply: Callable[..., object]) -> None:
    if inspect.iscoroutinefunction(apply) or inspect.isgeneratorfunction(apply):
        raise TypeError(f"operation {name!r} has to be a plain function that returns an outcome")
    try:
        inspect.signature(apply).bind("record", "parameters")
    except TypeError as error:
        raise TypeError(
            f"operation {name!r} has to take two arguments, the record and the parameters: {error}"
        ) from error


def _erase(writes: Callable[[Any], frozenset[str]]) -> Callable[[Any], frozenset[str]]:
    return writes
