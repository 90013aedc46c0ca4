"""The scenarios there are."""

from __future__ import annotations

from typing import Final

from . import (
    bulk_out_of_the_way,
    crash,
    effects_after_commit,
    keyset_traversal,
    lane_isolation,
    lease_ordering,
    noisy_tenant,
    ownership_fencing,
    payload_budget,
    terminal_cleanup,
    visibility_heartbeat,
    wire,
)
from .framework import Scenario

SCENARIOS: Final[tuple[Scenario, ...]] = (
    lane_isolation.SCENARIO,
    noisy_tenant.SCENARIO,
    visibility_heartbeat.SCENARIO,
    terminal_cleanup.SCENARIO,
    lease_ordering.SCENARIO,
    ownership_fencing.SCENARIO,
    crash.SCENARIO,
    payload_budget.SCENARIO,
    keyset_traversal.SCENARIO,
    effects_after_commit.SCENARIO,
    wire.SCENARIO,
    bulk_out_of_the_way.SCENARIO,
)
"""In the order of ``verify --all``."""
