"""The benches there are."""

from __future__ import annotations

from typing import Final

from . import chunk_loop, effects
from .framework import Bench

BENCHES: Final[tuple[Bench, ...]] = (chunk_loop.BENCH, effects.BENCH)
