"""The values of effects: a chunk's effect, the batch a sink receives, the result of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .operation import Record


@dataclass(frozen=True)
class Projection:
    """A record as it is now, for a sink."""

    id: str
    version: int
    """The record's version; for a deleted record, the version of its removal (0: unknown)."""
    record: Record | None
    """None: the record does not exist any more."""


@dataclass(frozen=True)
class Batch:
    """The records one chunk changed, as a sink receives them."""

    job_id: str
    position: int
    tenant: str
    operation: str
    records: Sequence[Projection]
    instead_of: Mapping[str, object] = field(default_factory=dict)
    """By record id, the newer state that the sink reported (``Delivered.newer``). The database was
    read again after that report and still holds this batch's version: the state outside belongs
    to a record that was deleted since, and the sink must overwrite it."""

    @property
    def key(self) -> str:
        """The same for every try of this chunk's effect."""
        return f"{self.job_id}:{self.position}"


@dataclass(frozen=True)
class Delivered:
    """A sink's answer to a batch; a record named in none of the fields was taken."""

    again: frozenset[str] = frozenset()
    """Ids to send again later."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Ids refused for good, with the reason."""
    newer: Mapping[str, object] = field(default_factory=dict)
    """The ids of which the sink kept a higher version than the one sent, each with the value by
    which the sink recognises that state."""
    retry_after_ms: int | None = None


@dataclass(frozen=True)
class Effect:
    """An effect row."""

    job_id: str
    position: int
    tenant: str
    operation: str
    lane: str
    versions: Mapping[str, int]
    """The chunk's changed records and the version each had after its commit."""
    todo: Mapping[str, frozenset[str] | None]
    """Sinks that have not taken everything, with the ids still to send; None means all."""
    tries: int = 0
    """Tries so far: those that recovery began, and those that the committing worker ended."""
    parked: bool = False
    claimed_until: int | None = None
    """When the current run's claim ends (ms); its try is counted already. None without a claim."""

    @property
    def tries_after(self) -> int:
        """The number of tries once the current run is counted."""
        return self.tries + (self.claimed_until is None)


@dataclass(frozen=True)
class EffectRun:
    """The result of one run of an effect."""

    todo: Mapping[str, frozenset[str] | None]
    refused: Sequence[tuple[str, str, str]]
    """(sink, record id, reason)"""
    retry_after_ms: int | None = None
    error: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What each sink that was asked and has not taken everything answered, in words for the
    tenant."""
    put_off: bool = False
    """Nothing was sent, because the sinks had asked all jobs to wait: it was no try."""
