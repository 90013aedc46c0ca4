"""What only some seeds have, each from dice of its own, so that a seed's other choices stay as they
are: an index that lags, requests that are repeated, faults that stick to one key, whole outages,
parked effects, batches, dead letters that are redriven, and messages near the end of their hiding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from handlers.jobs.words.timing import SECOND

from .watched_store import MAX_LAG

PLACES: Final = ("store", "queues", "payloads", "deliver")
"""Dependencies that fail as a whole."""
NONSENSE: Final = ("nothing", "float", "another thing", "unstorable")
"""Values of ``n`` for which the operation returns what is no outcome."""
MAX_BATCH: Final = 10
WIDE: Final = 4
"""One in so many seeds has more in its world."""
CROWDED: Final = 0.12
"""How many of these have nothing but a full lane."""


@dataclass(frozen=True)
class Outage:
    place: str
    after: float
    """Share of the time in which faults come that has passed before it."""
    lasts: int
    """ms."""


@dataclass(frozen=True)
class Repeat:
    """The same request once more, with the same key."""

    after: int
    """ms after the first try was sent: often before its answer."""


@dataclass
class Extras:
    """One seed's."""

    seed: int
    index_lag: int = field(init=False)
    """The most (ms) that an index may be behind its table."""
    keyed: float = field(init=False)
    """How likely a request has an Idempotency-Key."""
    outages: tuple[Outage, ...] = field(init=False)
    stuck: int = field(init=False)
    """How often one key starts to be refused for a while."""
    effect_tries: int = field(init=False)
    """After how many tries an effect, an event or a message is parked."""
    nonsense: float = field(init=False)
    """How likely a record that cannot be counted makes the operation talk nonsense."""
    batch: int = field(init=False)
    """Messages that one function gets at once, at most."""
    hidden_at_most: int = field(init=False)
    """How long (ms) the queue hides a message in all; SQS: twelve hours."""
    retries: int = field(init=False)
    """How often a client has the failed records of a job tried again."""
    removals: float = field(init=False)
    """How likely a record with a number is one that the operation removes."""
    old: float = field(init=False)
    """How likely a worker or function that starts before the faults end is of a version that does
    not know the jobs' operation yet."""
    redrives: bool = field(init=False)
    """Whether an operator redrives dead letters."""
    wide: bool = field(init=False)
    """Whether it can have any of what follows."""
    crowded: bool = field(init=False)
    """Nothing fails, and the bulk lane is full."""
    by_query: float = field(init=False)
    """How likely a request selects its records by a query."""
    by_file: float = field(init=False)
    """How likely another request names its records in a file."""
    unheard: float = field(init=False)
    """How likely the receives of a message reach nobody while there are faults."""
    damages: int = field(init=False)
    """How often a job's item comes to hold what cannot be decoded."""
    stops: int = field(init=False)
    """How often an operator stops a tenant in a lane, until the faults have ended."""

    def __post_init__(self) -> None:
        self.random = Random(f"extras {self.seed}")  # noqa: S311  repeatable
        choose = self.random.choice
        self.index_lag = choose((0, 0, 0, 500, MAX_LAG))
        self.keyed = choose((0.0, 0.0, 0.5))
        self.outages = tuple(
            Outage(choose(PLACES), self.random.random(), choose((3000, 10_000, 40_000)))
            for _ in range(choose((0, 0, 0, 1, 2)))
        )
        self.stuck = choose((0, 0, 0, 1, 4))
        self.effect_tries = choose((30, 30, 3))
        self.nonsense = choose((0.0, 0.5))
        self.batch = choose((1, 1, 1, MAX_BATCH))
        self.hidden_at_most = choose((12 * 3600, 12 * 3600, 60)) * SECOND
        self.redrives = choose((False, True))
        self.retries = choose((0, 3, 10))
        self.removals = choose((0.0, 0.0, 0.2))
        self.old = choose((0.0, 0.0, 0.0, 0.5))
        self._widen()

    def _widen(self) -> None:
        """A quarter of the seeds has more in its world; the others have none of it."""
        dice = Random(f"wide {self.seed}")  # noqa: S311  repeatable
        self.wide = self.seed % WIDE == 1
        self.crowded = self.wide and dice.random() < CROWDED
        plain = self.crowded or not self.wide
        self.stops = 0 if plain else dice.choice((0, 0, 2))
        self.by_query = 0.0 if plain else dice.choice((0.0, 0.0, 0.5))
        self.by_file = 0.0 if plain else dice.choice((0.0, 0.0, 0.5))
        self.unheard = 0.0 if plain else dice.choice((0.0, 0.0, 0.4))
        self.damages = 0 if plain else dice.choice((0, 0, 2))
        if self.crowded:
            self.index_lag = self.stuck = self.retries = 0
            self.outages, self.old, self.removals = (), 0.0, 0.0

    def lag(self) -> int:
        """How far (ms) the index is behind in one read of it."""
        return self.random.randint(0, self.index_lag) if self.index_lag else 0

    def repeats(self) -> tuple[Repeat, ...]:
        """The further tries of a request; none when it has no key."""
        if self.random.random() >= self.keyed:
            return ()
        spread = self.random.choice((5, 300, 20_000))
        return tuple(
            Repeat(self.random.randint(0, spread)) for _ in range(self.random.choice((1, 2)))
        )
