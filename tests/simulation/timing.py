"""The times of a simulated deployment: as short as the relations between them allow."""

from __future__ import annotations

from typing import Final

from handlers.jobs.words.timing import LaneTiming, Timing

SKEW: Final = 2.0
TIMING: Final = Timing(
    small=LaneTiming(heartbeat=1, lease_ttl=4, visibility=12),
    bulk=LaneTiming(heartbeat=2, lease_ttl=8, visibility=12),
    takeover_grace=17,
    clock_skew=SKEW,
    function_timeout=2,
    stop_timeout=10,
    longest_chunk=5,
    small_reserve=0.5,
    dispatch_grace=3,
    lost_after=60,
    retry_base=1,
    retry_cap=8,
    effect_grace=5,
    effect_claim=10,
    effect_retry_base=1,
    effect_retry_cap=8,
    history=3600,
)


def giving_up_soon(timing: Timing) -> Timing:
    """The same, but the queue gives a message up before recovery misses it."""
    update = {"max_receive_count": timing.small.max_attempts + 1}
    return timing.model_copy(
        update={
            "small": timing.small.model_copy(update=update),
            "bulk": timing.bulk.model_copy(update=update),
            "lost_after": 120,
        }
    )
