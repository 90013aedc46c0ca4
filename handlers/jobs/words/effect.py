"""What a chunk has to tell the outside: effects, and the batches handed to sinks."""

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
    """Of the record, or for one that is gone the version its removal has (0: nobody knows)."""
    record: Record | None
    """None: the record does not exist any more."""


@dataclass(frozen=True)
class Batch:
    """What a sink gets: the records one chunk changed."""

    job_id: str
    position: int
    tenant: str
    operation: str
    records: Sequence[Projection]
    instead_of: Mapping[str, object] = field(default_factory=dict)
    """By record id, what the sink called newer. The database, read again after that, still holds
    what is here: what is outside is of a record that was deleted since, and has to go."""

    @property
    def key(self) -> str:
        """The same for every try of this chunk's effect."""
        return f"{self.job_id}:{self.position}"


@dataclass(frozen=True)
class Delivered:
    """What became of a batch; records named in neither were taken."""

    again: frozenset[str] = frozenset()
    """Ids to send again later."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Ids refused for good, with the reason."""
    newer: Mapping[str, object] = field(default_factory=dict)
    """Ids of which the outside holds a higher version than the one sent, and kept it, with
    whatever lets the sink know that state again."""
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
    """Begun by recovery, or ended by the worker that committed the chunk."""
    parked: bool = False
    claimed_until: int | None = None
    """When the claim of the run that has it ends; its try is counted already."""

    @property
    def tries_after(self) -> int:
        """Once the run that is about to be settled has been counted."""
        return self.tries + (self.claimed_until is None)


@dataclass(frozen=True)
class EffectRun:
    """What one run of an effect achieved."""

    todo: Mapping[str, frozenset[str] | None]
    refused: Sequence[tuple[str, str, str]]
    """(sink, record id, reason)"""
    retry_after_ms: int | None = None
    error: str = ""
