"""Worlds in which a query or file is always walked by a worker, however few records it has."""

from __future__ import annotations

from handlers.jobs.words.limits import Limits
from handlers.testing.world import MemoryWorld, memory_world


def walking_world(limits: Limits | None = None) -> MemoryWorld:
    """An in-memory world whose creations do not look how many records there are."""
    return memory_world(limits=(limits or Limits()).model_copy(update={"look_calls": 0}))
