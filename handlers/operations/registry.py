"""Finding the operations of this package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from ..jobs.model import Operation

if TYPE_CHECKING:
    from ..jobs.model import Fields, Operations, Outcome

P = TypeVar("P", bound=BaseModel)

_found: dict[str, Operation] = {}


def operation(
    name: str, parameters: type[P], *, writes: Callable[[P], frozenset[str]]
) -> Callable[[Callable[[Fields, P], Outcome]], Callable[[Fields, P], Outcome]]:
    """Declare the decorated pure function as an operation.

    name: what clients send. parameters: their pydantic model. writes: the fields it may write,
    given the parameters. Raises ValueError when the name is taken by another function.
    """

    def declare(apply: Callable[[Fields, P], Outcome]) -> Callable[[Fields, P], Outcome]:
        if name in _found:
            raise ValueError(f"operation {name!r} is declared twice")
        _found[name] = Operation(
            name, parameters, apply, _erase(writes), (apply.__doc__ or "").strip()
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
