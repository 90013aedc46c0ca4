"""Records, operations, and the outcomes that an operation can have for a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from .writes import Value

if TYPE_CHECKING:
    from .writes import Write

# --- records and operations -------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    tenant: str
    id: str
    version: int
    fields: Mapping[str, Value]
    last_job_id: str | None = None


@dataclass(frozen=True)
class Change:
    """Set these fields; None removes one."""

    fields: Mapping[str, Value]


@dataclass(frozen=True)
class Remove:
    """Delete the record."""


@dataclass(frozen=True)
class Touch:
    """Leave the record as it is, but let the operation's effects run for it."""


@dataclass(frozen=True)
class Skip:
    """Nothing to do for this record, and that is fine."""

    reason: str


@dataclass(frozen=True)
class Fail:
    """This record cannot be changed as asked."""

    reason: str


Outcome: TypeAlias = Change | Remove | Touch | Skip | Fail

Fields: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True)
class Operation:
    """An operation: the pure function that a job applies to each record, and its parameters'
    model."""

    name: str
    parameters: type[BaseModel]
    apply: Callable[[Fields, Any], Outcome]
    """(the record's fields, the parameters) -> outcome. Pure; any exception is that record's
    failure."""
    writes: Callable[[Any], frozenset[str]]
    """The fields it may write, given its parameters."""
    sinks: tuple[str, ...] = ()
    """The sinks that must receive changed records, where a deployment has them."""
    description: str = ""
    missing: Outcome = Skip("no such record")
    """The outcome of an id that has no record."""


Operations: TypeAlias = Mapping[str, Operation]


@dataclass(frozen=True)
class Plan:
    """One record's outcome; ``write`` is None when nothing is written."""

    id: str
    outcome: Outcome
    write: Write | None = None
    version: int = 0
    """The version the record has after the commit; of a removed one, the version of its removal."""
    before: Record | None = None
    """The record that the write changes."""
