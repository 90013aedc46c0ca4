"""The scenarios there are."""

from __future__ import annotations

from typing import Final

from . import lane_isolation
from .framework import Scenario

SCENARIOS: Final[tuple[Scenario, ...]] = (lane_isolation.SCENARIO,)
"""In the order of ``verify --all``."""
