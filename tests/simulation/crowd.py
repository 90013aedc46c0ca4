"""A few seeds in which nothing fails, and more jobs want to run than the bulk lane has slots: there
the bound on being passed over holds at every moment."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from handlers.jobs.transitions.shares import set_weight
from handlers.jobs.words.limits import Limits

from . import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handlers.jobs.words.ports import World

    from .scenario import Scenario

TENANTS: Final = 3
WEIGHTS: Final = (1, 1, 3)
HEAVY: Final = 100
"""The weight of t0, whose one job is long: while it runs, the others get a turn only when they are
overdue."""
LONG: Final = 130
SHARES: Final = 0.25
"""How many of these seeds compare shares: they last."""
LASTING: Final = 5.0
"""Seconds of a slice, in the seeds that compare shares: longer than a slot stands free."""
EACH: Final = 200
"""Records of the other tenants' one job, in these."""
MANY: Final = 8
"""Jobs of one tenant, in these."""
OF_MANY: Final = 50
"""Records of each."""
LOOKS: Final = (20, 100)
"""ms from one message to the next, in these: a slot that stands free gets round all messages
before the first that it put off is there again, as in a real lane."""
PACE: Final = 5
"""ms of a request or reply, at most."""
READS: Final = (600, 800)
"""ms in which the records of a chunk are read: what a chunk's time is made of."""
CALLS: Final = 60
"""Ways of requests and replies between two looks at the slice, and in giving way, at most."""
POLLS: Final = 2 * 1500
"""ms until a free slot is given a message, twice: after a turn, and after a message put off."""


def settle(here: Scenario) -> None:
    """Give the seed's world the limits, times and faults of a full lane."""
    random, shares = here.extras.random, compares_shares(here)
    here.limits = Limits(
        small_max_items=1,
        chunk_size=2,
        tenant_slots_small=10,
        tenant_slots_bulk=10,
        max_retries=here.max_retries,
    )
    here.timing = here.timing.model_copy(
        update={"slice": LASTING if shares else random.choice((0.5, 1))}
    )
    here.faults = faults.none(here.random, pace=PACE, reads=random.choice(READS))


def plan(here: Scenario) -> None:
    """Weights at once, then more jobs than there are slots."""
    random = here.extras.random
    here.workers.slots = here.workers.most = 1
    here.watch.turns.longest_chunk = here.faults.reads + CALLS * PACE + POLLS
    if shares := compares_shares(here):
        here.workers.polls = LOOKS
    for number in range(TENANTS):
        weight = random.choice(WEIGHTS) if number or shares else HEAVY
        here.watch.turns.weights[f"t{number}"] = weight if shares else 0
        here.people.ask("weigh", partial(_weigh, f"t{number}", weight))
    for _ in range(4 * MANY if shares else random.randint(8, 12)):
        here.hub.after(random.randint(0, 3000), here.people.create)
    for _ in range(random.choice((0, 0, 4))):
        here.hub.after(random.randint(0, 30_000), here.people.control)


def compares_shares(here: Scenario) -> bool:
    """Whether one tenant has many jobs in the line, two have one each, and none is so heavy that
    the others get their turns by being overdue."""
    dice = Random(f"shares {here.seed}")  # noqa: S311  repeatable
    return here.extras.crowded and dice.random() < SHARES


def subjects(here: Scenario) -> Iterator[tuple[str, int]]:
    """The tenants of the subjects, each with its number of records."""
    if compares_shares(here):
        yield from [("t0", EACH), ("t1", EACH), *[("t2", OF_MANY)] * MANY]
        return
    yield "t0", LONG
    for number in range(here.extras.random.randint(3, 4)):
        yield f"t{1 + number % (TENANTS - 1)}", here.extras.random.randint(10, 30)


def _weigh(tenant: str, weight: int, world: World) -> None:
    set_weight(world, tenant, weight)
