"""A run as text for people: one line a step, and the same text for the same seed."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from handlers.jobs.words.writes import AnyOf, Check, Delete, Put, Update

from .threads import START

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from handlers.jobs.words.writes import Condition, Write

    from .scenario import Run


def render(run: Run) -> str:
    """The steps of a run, then what it broke."""
    lines = [f"seed {run.seed}", *(_step(*step) for step in run.trace)]
    lines += [f"VIOLATION {violation}" for violation in run.violations] or ["every rule held"]
    return "\n".join(lines)


def _step(at: int, who: str, what: str, how: object) -> str:
    return f"{(at - START) / 1000:10.3f}  {who:<22} {what:<18} {_how(how)}".rstrip()


def _how(how: object) -> str:
    match how:
        case str() | int():
            return str(how)
        case Exception():
            return f"{type(how).__name__}: {how}"
        case Put() | Update() | Delete() | Check():
            return _write(how)
        case list() | tuple():
            return "  ".join(_how(part) for part in how)
        case _ if is_dataclass(how) and not isinstance(how, type):
            parts = (f"{f.name}={getattr(how, f.name)!r}" for f in fields(how))
            return f"{type(how).__name__}({', '.join(parts)})"
        case _:
            return repr(how)


def _write(write: Write) -> str:
    key = f"{write.key.pk[-8:]}/{write.key.sk}"
    return f"{{{type(write).__name__} {key}: {', '.join(_effects(write))}{_when(write.when)}}}"


def _effects(write: Write) -> Iterator[str]:
    match write:
        case Put(item=item):
            shown = ("state", "fence", "attempt", "has_slot", "payload", "ids")
            yield from (f"{name}={_how(item[name])}" for name in shown if name in item)
        case Update():
            yield from (f"{name}={_how(value)}" for name, value in write.set.items())
            yield from (f"{name}+={value}" for name, value in write.add.items())
            if write.remove:
                yield "without " + " ".join(write.remove)


def _when(conditions: Iterable[Condition]) -> str:
    text = " & ".join(map(_condition, conditions))
    return f" if {text}" if text else ""


def _condition(condition: Condition) -> str:
    if isinstance(condition, AnyOf):
        return "(" + " or ".join(map(_condition, condition.conditions)) + ")"
    operand = getattr(condition, "value", getattr(condition, "other", ""))
    return f"{condition.name} {_operator(condition)} {operand}".rstrip()


def _operator(condition: Condition) -> str:
    """Its class's name, in words: ``AtMost`` is ``at most``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(condition).__name__).lower()
