"""The benches there are."""

from __future__ import annotations

from typing import Final

from . import chunk_loop, create, effects, imports
from .framework import Bench

BENCHES: Final[tuple[Bench, ...]] = (
    chunk_loop.BENCH,
    create.BENCH,
    effects.BENCH,
    imports.BENCH,
)
