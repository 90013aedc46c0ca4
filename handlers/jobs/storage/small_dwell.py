"""The small lane's dwell of late, as its workers leave it for the bulk lane's.

A few items in one partition: each process writes one of them, seldom, and a bulk worker reads all
of them with one query. A lost or doubled sample does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..words.job import Lane
from ..words.timing import SECOND
from ..words.writes import Key, Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..words.ports import World

ITEMS: Final = 8
"""More processes than that overwrite each other's samples: eight say enough."""
PREFIX: Final = "DWELL#"
KEPT: Final = 3600
"""Seconds until a sample that nobody replaces may be deleted."""


def write_dwell(world: World, number: int, *, dwell_ms: int, quiet_ms: int) -> None:
    """Leave a process's sample. number: any number of the process's own.

    Raises Transient, OutcomeUnknown, Refused."""
    now = world.runtime.now()
    item = {
        "at": now,
        "dwell_ms": dwell_ms,
        "quiet_ms": quiet_ms,
        "expires_at_seconds": now // SECOND + KEPT,
    }
    world.store.transact("write_dwell", [Put(_key(number), item)])


def read_dwells(world: World, *, since: int) -> Sequence[tuple[int, int]]:
    """The samples (dwell, quiet dwell; ms) left after that time (epoch ms). Raises Transient."""
    page = world.store.query_partition(_key(0).pk, sk_prefix=PREFIX, limit=ITEMS)
    samples = []
    for found in page.found:
        at, dwell, quiet = (found.item.get(name) for name in ("at", "dwell_ms", "quiet_ms"))
        if isinstance(at, int) and isinstance(dwell, int) and isinstance(quiet, int) and at > since:
            samples.append((dwell, quiet))
    return samples


def _key(number: int) -> Key:
    return Key(f"LANE#{Lane.SMALL}", f"{PREFIX}{number % ITEMS}")
