"""The benches there are."""

from __future__ import annotations

from typing import Final

from . import effects
from .framework import Bench

BENCHES: Final[tuple[Bench, ...]] = (effects.BENCH,)
