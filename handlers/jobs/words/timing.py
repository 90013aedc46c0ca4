"""The timing relations everything else relies on, and backoff. One home for both."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
SILENT: Final = 2 * SECOND
"""How long a failed call to a place outside took at least (ms) to count as silence."""
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

VISIBILITY_CAP: Final = 12 * HOUR
"""The longest time (ms) a message can be hidden, counted from its first receive; extending does not
reset it (SQS)."""


class BrokenRelation(ValueError):
    """Two settings contradict each other."""


def require(
    holds: bool,
    left: str,
    left_value: float,
    relation: str,
    right: str,
    right_value: float,
    why: str,
) -> None:
    """Raise BrokenRelation, naming both settings and their values, unless it holds."""
    if not holds:
        raise BrokenRelation(
            f"{left} = {left_value:.12g} must be {relation} {right} = {right_value:.12g}: {why}"
        )


class LaneTiming(BaseModel):
    """Seconds, for the jobs of one lane."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    heartbeat: float = Field(gt=0)
    lease_ttl: float = Field(gt=0)
    visibility: int = Field(gt=0, le=43_200)
    max_attempts: int = Field(default=5, ge=1)
    max_receive_count: int = Field(default=10, ge=1, le=1000)
    queue_retention: int = Field(default=4 * 86_400, ge=60, le=1_209_600)
    dlq_retention: int = Field(default=14 * 86_400, ge=60, le=1_209_600)

    @property
    def unheard_for(self) -> int:
        """Seconds after which a message is a dead letter that is received and handed to nobody."""
        return self.max_receive_count * self.visibility

    def check(self, lane: str) -> None:
        """Raise BrokenRelation, naming both settings and their values."""
        require(
            self.heartbeat * 3 <= self.lease_ttl,
            f"{lane}.heartbeat x 3",
            self.heartbeat * 3,
            "at most",
            f"{lane}.lease_ttl",
            self.lease_ttl,
            "a lease has to survive two failed beats",
        )
        require(
            self.lease_ttl <= self.visibility,
            f"{lane}.lease_ttl",
            self.lease_ttl,
            "at most",
            f"{lane}.visibility",
            self.visibility,
            "a redelivered message must be able to find an expired lease",
        )
        require(
            self.max_attempts >= 5,
            f"{lane}.max_attempts",
            self.max_attempts,
            "at least",
            "the floor",
            5,
            "a throttled delivery uses up a receive although the job does not run",
        )
        require(
            self.max_receive_count > self.max_attempts,
            f"{lane}.max_receive_count",
            self.max_receive_count,
            "greater than",
            f"{lane}.max_attempts",
            self.max_attempts,
            "a job must use up its attempts before the queue gives up on its message",
        )
        require(
            self.dlq_retention > self.queue_retention,
            f"{lane}.dlq_retention",
            self.dlq_retention,
            "greater than",
            f"{lane}.queue_retention",
            self.queue_retention,
            "SQS counts a dead letter's age from the first send of the message",
        )


class Timing(BaseModel):
    """Seconds. ``check`` holds the relations of both lanes and of the workers that serve them."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    small: LaneTiming
    bulk: LaneTiming
    takeover_grace: float = Field(gt=0)
    clock_skew: float = Field(default=5, ge=0)
    function_timeout: int = Field(gt=0, le=900)
    """The timeout of the small lane's Lambda."""
    stop_timeout: int = Field(default=120, ge=2, le=120)
    """The bulk worker's time between SIGTERM and SIGKILL (Fargate: 2..120)."""
    slice: float = Field(default=60, ge=0)
    """How long (s) a bulk job keeps its slot while other jobs wait for one; 0: until it ends."""
    longest_chunk: float = Field(default=30, gt=0)
    hang_after: float = Field(default=300, gt=0)
    """An attempt that reads no page and commits no chunk for this long is given up."""
    small_reserve: float = Field(default=5, ge=0)
    """Promote a small job when less than this is left of the function's time."""
    dispatch_grace: float = Field(default=10, gt=0)
    """How long the fast path has before recovery sends a dispatch."""
    lost_after: float = Field(default=900, gt=0)
    """A queued job that no worker began for this long has lost its message."""
    retry_base: float = Field(default=2, gt=0)
    retry_cap: float = Field(default=300, gt=0)
    effect_grace: float = Field(default=30, gt=0)
    """How long the worker that committed a chunk has for its effects before recovery runs them."""
    effect_claim: float = Field(default=60, gt=0)
    """How long one run of an effect by recovery may take."""
    effect_retry_base: float = Field(default=2, gt=0)
    effect_retry_cap: float = Field(default=900, gt=0)
    rollout: float = Field(default=10_800, ge=0)
    """How long (s) a job that a worker does not understand is left to workers of a newer version;
    0: it fails at once."""
    history: int = Field(default=30 * 86_400, gt=0)
    """How long finished jobs stay readable."""

    def lane(self, lane: str) -> LaneTiming:
        return self.small if lane == "small" else self.bulk

    def history_ends(self, now: int) -> int:
        """When a job that ends now may be deleted: epoch seconds, for DynamoDB's TTL. now: ms."""
        return now // SECOND + self.history

    def row_ends(self, now: int) -> int:
        """The same for a row of an unfinished job, whose history begins at its end."""
        return now // SECOND + 2 * self.history

    def check(self) -> None:
        """Raise BrokenRelation, naming both settings and their values."""
        for name, lane in (("small", self.small), ("bulk", self.bulk)):
            lane.check(name)
            needed = lane.visibility + lane.heartbeat + self.clock_skew
            require(
                self.takeover_grace > needed,
                "takeover_grace",
                self.takeover_grace,
                "greater than",
                f"{name}.visibility + heartbeat + clock_skew",
                needed,
                "a dead worker's job must be redelivered before another job may take its subject",
            )
        require(
            self.small.visibility >= 6 * self.function_timeout,
            "small.visibility",
            self.small.visibility,
            "at least",
            "6 x function_timeout",
            6 * self.function_timeout,
            "the event source mapping retries within the visibility timeout",
        )
        require(
            self.stop_timeout > self.longest_chunk,
            "stop_timeout",
            self.stop_timeout,
            "greater than",
            "longest_chunk",
            self.longest_chunk,
            "a stopping worker must have time to reach the end of its chunk",
        )
        self._check_hang()
        require(
            self.small_reserve < self.function_timeout,
            "small_reserve",
            self.small_reserve,
            "less than",
            "function_timeout",
            self.function_timeout,
            "a small job must have time to run before it is promoted",
        )

    def _check_hang(self) -> None:
        for lane, lease_ttl in (("small", self.small.lease_ttl), ("bulk", self.bulk.lease_ttl)):
            require(
                self.hang_after >= lease_ttl,
                "hang_after",
                self.hang_after,
                "at least",
                f"{lane}.lease_ttl",
                lease_ttl,
                "an attempt that hangs is one whose lease is renewed all the same",
            )
        for name, value, why in (
            ("longest_chunk", self.longest_chunk, "a long chunk does not hang"),
            ("function_timeout", self.function_timeout, "a function is ended by its own time-out"),
        ):
            require(
                self.hang_after > value,
                "hang_after",
                self.hang_after,
                "greater than",
                name,
                value,
                why,
            )


def ms(seconds: float) -> int:
    return round(seconds * SECOND)


def backoff_ms(
    tries: int, *, base: float, cap: float, random: float, asked_ms: int | None = None
) -> int:
    """How long to wait before try number ``tries + 1``: exponential with half jitter.

    base, cap: seconds. random: 0 <= x < 1. asked_ms: a Retry-After, honoured up to the cap.
    """
    ceiling = min(ms(cap), ms(base) << min(max(tries, 0), 30))
    waited = round(ceiling / 2 + random * ceiling / 2)
    return max(waited, min(asked_ms or 0, ms(cap)))
