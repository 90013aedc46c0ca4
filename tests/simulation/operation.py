"""The operation of every simulated job, and what it makes of each value of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from handlers.jobs.words.operation import Change, Fail, Operation, Remove, Skip

from . import outside

if TYPE_CHECKING:
    from handlers.jobs.words.operation import Fields, Outcome


class NoParameters(BaseModel):
    pass


def bump(fields: Fields, parameters: BaseModel) -> Outcome:
    """Count up, unless the record says otherwise."""
    match fields.get("n"):
        case int(n):
            return Change({"n": n + 1})
        case "skip":
            return Skip("asked to be left alone")
        case "remove":
            return Remove()
        case "raise":
            raise RuntimeError("an operation's bug")
        case "nothing":
            return None  # type: ignore[return-value]
        case "float":
            return Change({"n": 1.5})  # type: ignore[dict-item]
        case "another thing":
            return NoParameters()  # type: ignore[return-value]
        case "unstorable":
            return Fail("\ud800")
        case _:
            return Fail("no number")


BUMP: Final = Operation(
    "bump", NoParameters, bump, lambda _: frozenset({"n"}), sinks=(outside.NAME,)
)
