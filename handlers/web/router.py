"""Which function answers a request (docs/adr/0019-the-api-has-a-router-of-its-own.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .responses import Response

    Act = Callable[..., Response]

Function = TypeVar("Function", bound="Act")


@dataclass(frozen=True)
class Entry:
    """A route's function. It takes the request, and each ``{parameter}`` of the path by name."""

    method: str
    path: str
    act: Act


class Router:
    """The routes of the API, in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    @property
    def entries(self) -> Sequence[Entry]:
        return tuple(self._entries)

    def get(self, path: str) -> Callable[[Function], Function]:
        return self._adding("GET", path)

    def post(self, path: str) -> Callable[[Function], Function]:
        return self._adding("POST", path)

    def find(self, method: str, path: str) -> Act | None:
        """The function of the first route that fits, its parameters filled in. A slash at the end
        makes another path: ``/v1/jobs/`` has an empty id, which no route takes."""
        for entry in self._entries:
            if entry.method != method:
                continue
            parameters = _fit(entry.path, path)
            if parameters is not None:
                return partial(entry.act, **parameters)
        return None

    def _adding(self, method: str, path: str) -> Callable[[Function], Function]:
        def add(act: Function) -> Function:
            self._entries.append(Entry(method, path, act))
            return act

        return add


def _fit(pattern: str, path: str) -> dict[str, str] | None:
    """The parameters of the pattern in this path; None when it is another path."""
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    parameters = {}
    for part, found in zip(wanted, given, strict=True):
        if part.startswith("{") and found:
            parameters[part[1:-1]] = found
        elif part != found:
            return None
    return parameters
