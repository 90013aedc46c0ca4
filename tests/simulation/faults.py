"""What may go wrong at a port call, and how often: each seed draws its own mix."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random


class Kind(StrEnum):
    """What sort of call it is: what can go wrong depends on it."""

    READ = "read"
    TRANSACT = "transact"
    SEND = "send"
    OTHER = "other"
    """Calls that only know Transient: visibility, deletion, payloads."""


class Fault(StrEnum):
    NONE = ""
    CRASH_BEFORE = "crashed before"
    CRASH_AFTER = "crashed after"
    TRANSIENT = "transient"
    LOST_BEFORE = "reply lost, no effect"
    LOST_AFTER = "reply lost after the effect"
    LATE = "reply lost, effect comes late"
    CONFLICT = "conflict"
    THROTTLED = "throttled"


STALLED: Final = frozenset({"begin", "beat", "commit_chunk", "take_over"})
DELAYED: Final = frozenset({"beat", "commit_chunk"})
EVERYWHERE: Final = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
POSSIBLE: Final[dict[Kind, tuple[Fault, ...]]] = {
    Kind.READ: (Fault.TRANSIENT,),
    Kind.TRANSACT: (
        Fault.TRANSIENT,
        Fault.LOST_BEFORE,
        Fault.LOST_AFTER,
        Fault.LATE,
        Fault.CONFLICT,
        Fault.THROTTLED,
    ),
    Kind.SEND: (
        Fault.TRANSIENT,
        Fault.LOST_BEFORE,
        Fault.LOST_AFTER,
    ),
    Kind.OTHER: (Fault.TRANSIENT, Fault.LOST_AFTER),
}


@dataclass
class Faults:
    """The seed's mix. ``off`` ends them for good: from then on the world has to come to rest."""

    random: Random
    likely: dict[Kind, tuple[tuple[float, Fault], ...]]
    """Cumulative probabilities."""
    pace: float
    """ms; the longest usual way of a request or reply."""
    slow: float
    """How likely a way takes seconds."""
    asleep: float
    """How likely a process stands still for seconds, all its threads with it."""
    late: float
    """How likely a beat or a chunk's commit arrives after its worker has given up on it."""
    stalls: float
    """How likely it does so just before a call whose condition was read earlier."""
    max_skew: int
    """ms."""
    duplicates: float
    """How likely a message is delivered, or sent, twice."""
    refused: float
    """How likely a queue accepts the call but not the message."""
    reads: int = 0
    """ms for which every read of records takes longer than its way."""
    down: dict[str, int] = field(default_factory=dict)
    """Until when (ms) each sort of call fails for everybody: a dependency that is down."""
    stuck: dict[str, int] = field(default_factory=dict)
    """Until when (ms) the items of a partition are refused to everybody: one key that is hot, or
    whose storage node has trouble."""
    off: bool = False

    def pick(self, kind: Kind, what: str) -> Fault:
        if self.off:
            return Fault.NONE
        if what in DELAYED and self.late and self.random.random() < self.late:
            return Fault.LATE
        drawn = self.random.random()
        for below, fault in self.likely[kind]:
            if drawn < below:
                return fault
        return Fault.NONE

    def sleep(self, what: str) -> int:
        """How long the process stands still before this call (ms)."""
        likely = self.stalls if what in STALLED else self.asleep
        if self.off or not likely or self.random.random() >= likely:
            return 0
        # Some end about when the message is delivered again, some when the grace is over.
        least, most = self.random.choice(((500, 30_000), (8000, 15_000), (20_000, 45_000)))
        return self.random.randint(least, most)

    def is_down(self, what: str, now: int) -> bool:
        return not self.off and now < self.down.get(what, 0)

    def is_stuck(self, partition: str, now: int) -> bool:
        return not self.off and now < self.stuck.get(partition, 0)

    def way(self) -> float:
        """How long a request or a reply travels (ms)."""
        if self.off:
            return self.random.random() * 5
        if self.random.random() < self.slow:
            return self.random.random() * 20_000
        return self.random.random() * self.pace

    def skew(self) -> int:
        return self.random.randint(-self.max_skew, self.max_skew)


def draw(random: Random, *, max_skew: int) -> Faults:
    """The mix of one seed: some faults often, some never."""
    wild = random.choice((0.0, 0.5, 1.0, 1.0, 2.0))
    weight = {fault: random.choice((0.0, 0.005, 0.02, 0.05)) * wild for fault in Fault}
    for fault in EVERYWHERE:
        weight[fault] = random.choice((0.0, 0.002, 0.01)) * wild
    likely = {}
    for kind, faults in POSSIBLE.items():
        total, steps = 0.0, []
        for fault in (*EVERYWHERE, *faults):
            if weight[fault]:
                total += weight[fault]
                steps.append((total, fault))
        likely[kind] = tuple(steps)
    return Faults(
        random=random,
        likely=likely,
        pace=random.choice((5, 30, 150, 400, 800)),
        slow=random.choice((0.0, 0.0, 0.002, 0.01)),
        asleep=random.choice((0.0, 0.0, 0.002, 0.008)),
        late=random.choice((0.0, 0.0, 0.1, 0.3)),
        stalls=random.choice((0.0, 0.0, 0.05, 0.3)),
        max_skew=random.choice((0, max_skew)),
        duplicates=random.choice((0.0, 0.05, 0.3)),
        refused=random.choice((0.0, 0.02, 0.1)),
    )


def none(random: Random, *, pace: float, reads: int) -> Faults:
    """Nothing fails, and all clocks are right."""
    never: dict[Kind, tuple[tuple[float, Fault], ...]] = dict.fromkeys(Kind, ())
    return Faults(
        random=random,
        likely=never,
        pace=pace,
        slow=0,
        asleep=0,
        late=0,
        stalls=0,
        max_skew=0,
        duplicates=0,
        refused=0,
        reads=reads,
    )
