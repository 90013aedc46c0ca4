"""Pairs that other programs on the machine did not disturb.

Where one side of a pair uses two processors and the other one only one, a program that takes a
processor slows one side alone: the ratio is then the machine's and not Fairlane's. Such a pair is
measured again, and when the machine does not become quiet, the figure is shown and not judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psutil

BUSY: Final = 0.15
"""Processors that other programs may use during a pair."""
MORE: Final = 2
"""At most so many times the wanted number of pairs is measured."""
ENOUGH: Final = 0.5
"""The share of the wanted pairs that has to be quiet."""


@dataclass(frozen=True)
class Pairs:
    ones: list[float]
    others: list[float]
    quiet: bool
    """Whether the machine was; otherwise these are the disturbed ones, too."""


def quiet_pairs(
    one: Callable[[], float],
    other: Callable[[], float],
    rounds: int,
    *,
    disturbed: Callable[[Callable[[], None]], bool] | None = None,
) -> Pairs:
    """Run both ``rounds`` times, in the order A B B A. A disturbed pair is measured again, while
    there are fewer than ``MORE`` times as many pairs.

    disturbed: runs a pair and says whether others used the machine meanwhile.
    """
    was_disturbed = disturbed or _disturbed
    found: list[tuple[float, float, bool]] = []
    while sum(quiet for *_, quiet in found) < rounds and len(found) < MORE * rounds:
        seen: dict[int, float] = {}
        order = (0, 1) if len(found) % 2 == 0 else (1, 0)

        def pair(seen: dict[int, float] = seen, order: tuple[int, int] = order) -> None:
            for which in order:
                seen[which] = (one, other)[which]()

        quiet = not was_disturbed(pair)
        found.append((seen[0], seen[1], quiet))
    enough = sum(quiet for *_, quiet in found) >= ENOUGH * rounds
    kept = [each for each in found if each[2] or not enough]
    return Pairs([each[0] for each in kept], [each[1] for each in kept], enough)


def _disturbed(pair: Callable[[], None]) -> bool:
    start, all_before, own_before = time.monotonic(), _machine(), own_seconds()
    pair()
    seconds = max(time.monotonic() - start, 0.001)
    others = (_machine() - all_before) - (own_seconds() - own_before)
    return others > BUSY * seconds


def _machine() -> float:
    """Seconds of processor time that the machine has spent."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0) - getattr(times, "guest", 0)


def own_seconds() -> float:
    """Seconds of this process and those it started, the local AWS among them."""
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
