"""The query string of a request, checked like a body: what is not known is refused."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .problems import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WHOLE: Final = re.compile(r"[0-9]{1,4}")
Choice = TypeVar("Choice", bound=StrEnum)


class Query:
    """The parameters of one request. Every method raises Problem, naming the parameter."""

    def __init__(self, event: Mapping[str, Any], *known: str) -> None:
        """event: a REST API's proxy event. known: the parameters the route has."""
        many = event.get("multiValueQueryStringParameters") or {}
        once = event.get("queryStringParameters") or {}
        self._given: dict[str, Sequence[str]] = {
            **{name: [value or ""] for name, value in once.items()},
            **{name: list(values or [""]) for name, values in many.items()},
        }
        for name in self._given:
            if name not in known:
                there_are = f"; there are: {', '.join(known)}" if known else ""
                raise bad_request(name[:100], f"is not a parameter of this route{there_are}")

    def many(self, name: str) -> Sequence[str]:
        return self._given.get(name, ())

    def get(self, name: str) -> str | None:
        values = self.many(name)
        if len(values) > 1:
            raise bad_request(name, "is given more than once")
        return values[0] if values else None

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if value not in {None, "true", "false"}:
            raise bad_request(name, "must be true or false")
        return value == "true"

    def choice(self, name: str, kind: type[Choice]) -> Choice | None:
        value = self.get(name)
        try:
            return None if value is None else kind(value)
        except ValueError:
            known = ", ".join(member.value for member in kind)
            raise bad_request(name, f"must be one of {known}") from None

    def whole(self, name: str, *, default: int, most: int) -> int:
        text = self.get(name)
        if text is None:
            return default
        if not WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
            raise bad_request(name, f"must be a whole number from 1 to {most}")
        return int(text)
