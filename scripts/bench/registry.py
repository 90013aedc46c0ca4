"""The benches there are."""

from __future__ import annotations

from typing import Final

from . import calls, chunk_loop, cold_start, create, effects, imports, isolation, large_job, turns
from .framework import Bench

BENCHES: Final[tuple[Bench, ...]] = (
    isolation.BENCH,
    cold_start.BENCH,
    chunk_loop.BENCH,
    turns.BENCH,
    effects.BENCH,
    create.BENCH,
    calls.BENCH,
    imports.BENCH,
    large_job.BENCH,
)
