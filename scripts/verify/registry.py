"""The scenarios there are."""

from __future__ import annotations

from typing import Final

from . import lane_isolation, terminal_cleanup, visibility_heartbeat
from .framework import Scenario

SCENARIOS: Final[tuple[Scenario, ...]] = (
    lane_isolation.SCENARIO,
    visibility_heartbeat.SCENARIO,
    terminal_cleanup.SCENARIO,
)
"""In the order of ``verify --all``."""
