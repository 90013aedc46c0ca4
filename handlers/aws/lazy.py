"""Ports that are made when they are first needed: most processes that have them never need them,
and their imports are slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Port = TypeVar("Port")


class _Lazy:
    """Has the attributes of what it makes. Two threads may make one each; one of them stays."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._made: object | None = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)


def lazily(make: Callable[[], Port]) -> Port:
    """A port that is made when it is first used."""
    return cast("Port", _Lazy(make))
