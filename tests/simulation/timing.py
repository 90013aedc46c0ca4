"""The times of a simulated deployment: as short as the relations between them allow."""

from __future__ import annotations

from typing import Final

from handlers.jobs.words.timing import SECOND, LaneTiming, Timing, ms

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

TO_EXPIRE: Final = ms(TIMING.bulk.lease_ttl) + SECOND
"""ms after which the lease of a worker that stands still has expired, in either lane."""
TO_BE_TAKEN: Final = ms(TIMING.bulk.lease_ttl + TIMING.takeover_grace) + SECOND
"""ms after which another job may take its subject, and recovery sends its job's message again."""
TO_BE_SENT: Final = ms(TIMING.dispatch_grace) + SECOND
"""ms after which recovery sends what was not sent."""
TO_BE_MISSED: Final = ms(TIMING.lost_after) + SECOND
"""ms after which recovery takes a message for lost."""
TO_BE_PROMOTED: Final = ms(TIMING.function_timeout - TIMING.small_reserve) + SECOND // 10
"""ms after which a function has too little time left."""


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
