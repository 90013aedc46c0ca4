"""Nothing bulk makes a small job wait: not its workers, its queue, or the database.

Each part has a module with ``run`` and ``control``, and says in its name what it measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Final

from scripts.verify.framework import Bench, Scenario, Seen

from . import busy_place, paced, rates, slices, small_at_once

PARTS: Final = (small_at_once, slices, rates, busy_place, paced)


def run(bench: Bench) -> Iterator[Seen]:
    for part in PARTS:
        bench.steps.say(_title(part))
        yield from part.run(bench)


def control(bench: Bench) -> Iterator[Seen]:
    for part in PARTS:
        bench.steps.say(f"The control. {_title(part)}")
        yield from part.control(bench)


def _title(part: ModuleType) -> str:
    """What the part shows, in its own words."""
    return " ".join((part.__doc__ or "").partition("\n\n")[0].split())


SCENARIO: Final = Scenario(
    "bulk-out-of-the-way",
    "Bulk work makes no small job wait: small is what a job is, and bulk work gives way.",
    run,
    control,
)
