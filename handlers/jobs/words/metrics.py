"""The names of the metrics. Dimensions are lane and operation, never tenant."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    DWELL = "Dwell"
    """ms from the moment a job could have started to its first start."""
    QUEUE_DWELL = "QueueDwell"
    """ms from the send of the message to the start, on the first receive."""
    JOB_DURATION = "JobDuration"
    """ms from first start to the end."""
    ITEMS = "Items"
    """Records done by a chunk."""
    CHUNK_TIME = "ChunkTime"
    """ms of one chunk: read, plan, commit."""
    REDELIVERIES_OF_ACTIVE = "RedeliveriesOfActive"
    OWNERSHIP_LOST = "OwnershipLost"
    TAKEOVERS = "Takeovers"
    ATTEMPTS_EXHAUSTED = "AttemptsExhausted"
    UNREADABLE_MESSAGES = "UnreadableMessages"
    DISPATCHES_OPEN = "DispatchesOpen"
    EFFECTS_OPEN = "EffectsOpen"
    EFFECTS_WAITING = "EffectsWaiting"
    """Parked effects, which wait for a replay."""
    EVENTS_OPEN = "EventsOpen"
    """These four count the rows of both lanes when recovery begins a run; at most
    ``backlog.MAX_COUNTED`` of each shard are counted."""
    DISPATCHES_RECOVERED = "DispatchesRecovered"
    """Messages that recovery sent because the fast path did not."""
    OLDEST_DISPATCH = "OldestDispatch"
    """ms the oldest unsent dispatch is past due."""
    EFFECTS_DONE = "EffectsDone"
    EFFECTS_PARKED = "EffectsParked"
    EFFECT_AGE = "EffectAge"
    """ms an effect that recovery runs is past due."""
    EVENTS_PARKED = "EventsParked"
    """Events that a listener refused, or whose delivery failed too often."""
    EVENT_AGE = "EventAge"
    """ms an event that recovery delivers is past due."""
    JOBS_REDISPATCHED = "JobsRedispatched"
    """Dead or lost jobs that got a fresh message."""
